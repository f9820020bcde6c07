#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    m.lock();
    m.unlock();
    m.unlock();
  });
}
