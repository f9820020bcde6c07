// An exception of another language leaves main.
#include <unwind.h>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    static _Unwind_Exception of_no_known_language{};
    ::_Unwind_RaiseException(&of_no_known_language);
    return 0;
  });
}
