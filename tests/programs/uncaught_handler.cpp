// The user's terminate handler runs, with the exception as the current one.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  std::set_terminate([] {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::runtime_error& e) {
      std::fprintf(stderr, "the handler sees: %s\n", e.what());
    }
    _exit(9);
  });
  return weft::run([] {
    weft::wait_group w;
    w.go([] { throw std::runtime_error("handled"); });
    w.wait();
  });
}
