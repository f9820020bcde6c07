#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::lock_os_thread();
    weft::unlock_os_thread();
    weft::unlock_os_thread();
  });
}
