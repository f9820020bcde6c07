#include "weft/errno.hpp"

#include "runtime/config.hpp"

#include <cerrno>

namespace weft::detail {

// The empty assembly statement, into which compilers cannot look, keeps them from deducing that the result never
// changes within a thread: with link-time optimisation they also look into functions that are not inlined.
WEFT_NOINLINE int* errno_location() noexcept {
  asm volatile("" : : : "memory");
  return ::__errno_location();  // what <errno.h> defines errno by
}

}  // namespace weft::detail
