// Like the exception by which a thread is cancelled, that of exit_goroutine must not be swallowed.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto t = weft::spawn({.name = "swallows"}, [] {
      try {
        weft::exit_goroutine();
      } catch (...) {}
      return 7;
    });
    return t.join();
  });
}
