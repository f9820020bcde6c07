// The frames of goroutines that come from far back in the global queue: they are in no cache any more, nor their page
// in the TLB. They are loaded shortly before their turn, a few goroutines at a time: one alone does not keep the memory
// busy, and a whole batch leaves the first cache before it runs.
#pragma once

#include "runtime/config.hpp"
#include "runtime/prefetch.hpp"

#include <array>
#include <cstdint>

namespace weft::rt {

// Beside a run queue's ring, whose positions it goes by. Owner only. Notes that are out of date, as thieves came or
// others were put between, do no harm: what is loaded was a goroutine's stack, and need not be one.
class cold_frames {
 public:
  // The goroutine that will be put at `position` goes on at `context`; null: it has not begun.
  void add(std::uint32_t position, const void* context) noexcept {
    contexts_[position % run_queue_size] = context;
    if (context) end_ = position + 1;
  }

  // `position` is the next to be taken.
  void load_ahead_of(std::uint32_t position) noexcept {
    if (WEFT_UNLIKELY(end_ - position - 1 < run_queue_size)) load_some(position);
  }

 private:
  static constexpr std::uint32_t some = 4, few = 4;

  WEFT_NOINLINE void load_some(std::uint32_t position) noexcept {
    if (loaded_ - position > run_queue_size) loaded_ = position;  // those between were stolen, or have run
    if (loaded_ - position > few) return;
    for (std::uint32_t i = 0; i < some && loaded_ != end_; ++i, ++loaded_) {
      if (const void* c = contexts_[loaded_ % run_queue_size]) load_lines(c, lines_of_frames);
    }
  }

  std::uint32_t end_ = 0;     // of those noted
  std::uint32_t loaded_ = 0;  // up to here
  std::array<const void*, run_queue_size> contexts_{};
};

}  // namespace weft::rt
