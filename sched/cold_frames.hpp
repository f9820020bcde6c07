// Prefetching the stack frames of goroutines that come from far back in the global queue. Such frames are no longer in
// any cache, and their pages no longer in the TLB. They are loaded shortly before the goroutines run, a few goroutines
// at a time: loading the frames of one alone does not keep the memory busy, and those of a whole batch would leave the
// first-level cache again before their goroutines run.
#pragma once

#include "runtime/config.hpp"
#include "runtime/prefetch.hpp"

#include <array>
#include <cstdint>

namespace weft::rt {

// Notes for the goroutines in a run queue's ring, by their positions there. Only the P's owner uses it. A note that is
// out of date, because a thief took the goroutine or another one was put in between, does no harm: the address that is
// loaded was once on a goroutine's stack, and a prefetch works even if it no longer is.
class cold_frames {
 public:
  // Notes that the goroutine that will be put at `position` goes on at `context`; null: it has not begun.
  void add(std::uint32_t position, const void* context) noexcept {
    contexts_[position % run_queue_size] = context;
    if (context) end_ = position + 1;
  }

  // Called when the goroutine at `position` is the next to be taken.
  void load_ahead_of(std::uint32_t position) noexcept {
    if (WEFT_UNLIKELY(end_ - position - 1 < run_queue_size)) load_some(position);
  }

 private:
  static constexpr std::uint32_t some = 4, few = 4;

  WEFT_NOINLINE void load_some(std::uint32_t position) noexcept {
    if (loaded_ - position > run_queue_size) loaded_ = position;  // the goroutines in between were stolen, or have run
    if (loaded_ - position > few) return;
    for (std::uint32_t i = 0; i < some && loaded_ != end_; ++i, ++loaded_) {
      if (const void* c = contexts_[loaded_ % run_queue_size]) load_lines(c, lines_of_frames);
    }
  }

  std::uint32_t end_ = 0;     // the position after the last one that was noted
  std::uint32_t loaded_ = 0;  // the position before which everything is loaded
  std::array<const void*, run_queue_size> contexts_{};
};

}  // namespace weft::rt
