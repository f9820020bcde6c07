// An exception that ends at a noexcept is reported once, and then the program's own handler is called.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <weft/weft.hpp>

namespace {

void fails() { throw 7; }

void forbidden() noexcept { fails(); }

}  // namespace

int main() {
  std::set_terminate([] {
    std::fputs("the handler\n", stderr);
    std::_Exit(3);
  });
  return weft::run([] { forbidden(); });
}
