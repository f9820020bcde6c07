// Uses weft in a static initialiser. EARLY says what goes wrong there: "uncaught", "unlock", or nothing.
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace {

const bool early = [] {
  const char* set = std::getenv("EARLY");
  const std::string_view fault = set ? set : "";
  weft::run([fault] {
    if (fault == "uncaught") weft::go([] { throw std::runtime_error("thrown early"); });
    if (fault == "unlock") weft::mutex().unlock();
    weft::sleep(std::chrono::milliseconds(10));
  });
  return true;
}();

}  // namespace

int main() { std::puts(early ? "early" : "late"); }
