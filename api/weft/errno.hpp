// errno for goroutines: it may be used before and after a suspension in one function.
//
// Each goroutine has its own errno. But <errno.h> promises compilers that its address never changes within a function,
// so they keep it, and after a suspension that is the errno of a thread on which the goroutine does not run any more.
// Here errno is what a function without that promise returns; a few nanoseconds for each use.
//
// Every header of weft includes this one. A file that includes none, and calls functions that may suspend:
// -include weft/errno.hpp. Who never uses errno like that, and wants it as <errno.h> has it: -DWEFT_SAFE_ERRNO=0.
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
