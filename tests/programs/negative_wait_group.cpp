#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::wait_group w;
    w.add(1);
    w.done();
    w.done();
  });
}
