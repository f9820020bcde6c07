#include "sysmon/cooling.hpp"

#include "runtime/stack_cooling.hpp"

#include <algorithm>

namespace weft::rt {

void cooling::look(nanos now) noexcept {
  if (now >= next_interval_) {
    stack_begin_interval();
    next_interval_ = now + interval;
    next_batch_ = now;
  }
  if (now >= next_batch_) next_batch_ = stack_cool_some() ? now + between_batches : forever;
}

nanos cooling::next_look() const noexcept {
  return stacks_lie_free() ? std::min(next_batch_, next_interval_) : forever;
}

}  // namespace weft::rt
