// What a thread does, as far as that can be told from the processor time that it uses.
#pragma once

#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

enum class thread_does : std::uint8_t {
  compute,  // it runs, or waits for a processor
  sleep,    // it sleeps in the kernel
  unknown,
};

// For a thread that cannot be looked at (sysmon/thread_state.hpp).
class thread_use {
 public:
  // A thread that waits for a processor beside many others gets one more often than that, and then uses more of it than
  // one in `hardly_any` parts. One that sleeps, but looks around now and then, uses less.
  static constexpr nanos long_enough = 50 * millisecond;
  static constexpr nanos hardly_any = 64;

  // `used`: the processor time that the thread had used at `now`; negative: unknown.
  void begin(nanos used, nanos now) noexcept {
    used_ = used;
    since_ = now;
  }

  // Unknown until `long_enough` after the beginning, or after the last look that told something.
  thread_does look(nanos used, nanos now) noexcept {
    if (used_ >= 0 && used >= 0 && now - since_ < long_enough) return thread_does::unknown;
    const nanos before = used_, time = now - since_;
    begin(used, now);
    if (used < 0 || before < 0) return thread_does::unknown;
    return (used - before) * hardly_any >= time ? thread_does::compute : thread_does::sleep;
  }

 private:
  nanos used_ = -1, since_ = 0;
};

}  // namespace weft::rt
