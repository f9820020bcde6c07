// errno for goroutines: one function may use it before and after a suspension.
//
// Each goroutine has its own errno. But <errno.h> promises the compiler that the address of errno never changes within
// a function. So the compiler keeps the address, and after a suspension that may be the errno of a thread on which the
// goroutine no longer runs. Here errno goes through a function without that promise; each use costs a few nanoseconds.
//
// Every header of weft includes this one. Compile a file that includes none of them, but calls functions that may
// suspend, with -include weft/errno.hpp. To keep errno as <errno.h> defines it, for code that never uses it across a
// suspension, compile with -DWEFT_SAFE_ERRNO=0.
#pragma once

#include <weft/detail/config.hpp>

namespace weft::detail {
WEFT_API int* errno_location() noexcept;
}

#if !defined(WEFT_SAFE_ERRNO)
#define WEFT_SAFE_ERRNO 1
#endif

#if WEFT_SAFE_ERRNO

#include <cerrno>

#undef errno
#define errno (*::weft::detail::errno_location())

#endif
