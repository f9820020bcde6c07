#include "weft/errno.hpp"

#include "runtime/config.hpp"

#include <cerrno>

namespace weft::detail {

// The assembly, of which compilers know nothing, keeps them from finding out that the result never changes within a
// thread: with link-time optimisation they look into functions that are not inlined, too.
WEFT_NOINLINE int* errno_location() noexcept {
  asm volatile("" : : : "memory");
  return ::__errno_location();  // what errno is in <errno.h>
}

}  // namespace weft::detail
