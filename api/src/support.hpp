// Small things that the sources of the public API share.
#pragma once

#include "sched/proc.hpp"
#include "weft/detail/time.hpp"

namespace weft {

// A deadline `d` ns from now; rt::forever if that is too far.
inline rt::nanos deadline_after(std::int64_t d) noexcept {
  return d >= detail::never_ns ? rt::forever : rt::saturating_add(rt::nanotime(), d);
}

}  // namespace weft
