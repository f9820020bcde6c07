#include "sysmon/cooling.hpp"

#include "runtime/stack_cooling.hpp"

namespace weft::rt {

void cooling::look(nanos now, bool anything_ran) noexcept {
  some_free_ |= anything_ran;
  if (now >= next_interval_) {
    next_interval_ = now + interval;
    some_left_ = some_free_ = stack_begin_interval();
  }
  if (some_left_ && now >= next_look_) some_left_ = stack_cool_some();
  next_look_ = some_left_ ? now + between_two : some_free_ ? next_interval_ : forever;
}

}  // namespace weft::rt
