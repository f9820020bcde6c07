// Where the C++ runtime keeps a thread's exceptions.
#pragma once

#include "runtime/g.hpp"

#include <cxxabi.h>

#if defined(_LIBCPP_VERSION)
// libc++abi has it, with the same layout as libstdc++, but does not declare it.
namespace __cxxabiv1 {
extern "C" void* __cxa_get_globals() noexcept;
}
#endif

namespace weft::rt {

inline exception_state* exceptions_of_this_thread() noexcept {
  return reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
}

}  // namespace weft::rt
