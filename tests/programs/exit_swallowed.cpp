// Like the exception of a thread that is cancelled, that of exit_goroutine has to arrive.
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
