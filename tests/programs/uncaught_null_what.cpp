// An exception whose what() returns null.
#include <cstdlib>
#include <exception>
#include <weft/weft.hpp>

namespace {
struct silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};
}  // namespace

int main() {
  std::set_terminate(std::abort);  // the default handler would print its what(), too
  return weft::run([] {
    weft::spawn([] { throw silent(); }).detach();
    weft::chan<int>().recv();
  });
}
