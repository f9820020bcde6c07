// std::atomic, under a name for which weft's own tests can substitute theirs (WEFT_INTERLEAVE: runtime/atomic.hpp).
#pragma once

#include <atomic>

#if defined(WEFT_INTERLEAVE)
namespace weft::rt {
template <class T>
class atomic;
}
namespace weft::detail {
template <class T>
using atomic = rt::atomic<T>;
}
#else
namespace weft::detail {
template <class T>
using atomic = std::atomic<T>;
}
#endif
