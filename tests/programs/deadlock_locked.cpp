// Go's TestLockedDeadlock: a thread that is tied to a waiting goroutine does not count as one that runs.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::chan<int> c;
    weft::go({.name = "locked"}, [=] {
      weft::lock_os_thread();
      c.recv();
    });
    weft::lock_os_thread();
    c.recv();
  });
}
