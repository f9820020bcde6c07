#include <unwind.h>
#include <weft/weft.hpp>

// Such as a panic of Rust's that is not caught before it reaches C++.
int main() {
  return weft::run([] {
    static _Unwind_Exception of_no_known_language{};
    weft::spawn([] { ::_Unwind_RaiseException(&of_no_known_language); }).join();
  });
}
