// A terminate handler that calls the one it found, as crash reporters do, and that is still installed at the next
// run().
#include <cstdio>
#include <exception>
#include <weft/weft.hpp>

namespace {

std::terminate_handler found;

void fails() { throw 7; }

void forbidden() noexcept { fails(); }

}  // namespace

int main() {
  weft::run([] {
    found = std::set_terminate([] {
      std::fputs("the handler\n", stderr);
      found();
    });
  });
  return weft::run([] { forbidden(); });
}
