// The goroutine that swallowed the exception is named, not the one that drops the last reference to it.
#include <exception>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    std::exception_ptr kept;
    weft::spawn([&] {
      try {
        weft::exit_goroutine();
      } catch (...) {
        kept = std::current_exception();
      }
    }).join();
    kept = nullptr;
  });
}
