// An exception of another language leaves a goroutine. Nobody catches it, and so who throws it would go on.
#include <cstdio>
#include <unwind.h>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::go([] {
      static _Unwind_Exception of_no_known_language{};
      ::_Unwind_RaiseException(&of_no_known_language);
      std::fputs("survived\n", stderr);
    });
    weft::sleep(std::chrono::seconds(10));
    return 0;
  });
}
