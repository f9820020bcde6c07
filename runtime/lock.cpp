#include "runtime/lock.hpp"

#include "runtime/fatal.hpp"

namespace weft::rt {

namespace {
// Pauses between one look at a held lock and the next: about 2 µs in all, longer than nearly any critical section,
// shorter than a sleep and a wake-up. Each look takes the cache line away from the holder, who needs it back to unlock,
// and most often locks again soon: after a few looks it shall go on undisturbed for some rounds.
//
// The exceptions are rare. Under sched.mutex: a P is taken from a goroutine that runs (membarrier, how the thread fares
// by /proc, its turns), threads are counted for the deadlock check, an M is made, a queue's array grows or is given
// back. Under the others: memory is mapped or given back, many entries of a timer heap are put right, and for a timer
// that is set under a channel's lock an M may have to be made. sched.world is held for as long as the world is stopped,
// or a run() takes to end: who wants that looks now and then (acquire_world).
constexpr int pauses[] = {1, 4, 16, 64};
}  // namespace

void lock::acquire_slow() noexcept {
  for (int n : pauses) {
    std::uint32_t seen = word_.load(relaxed);
    if (seen == held_with_sleepers) break;  // others sleep already: one spinner is enough
    if (seen == free_word && word_.compare_exchange_weak(seen, held, acquire, relaxed)) return;
    for (; n > 0; --n) cpu_relax();
  }
  // From here on the word says that there are sleepers, even if this thread turns out to be the only one:
  // whoever takes the lock here cannot know, and one futile wake-up is cheaper than a lost one.
  while (word_.exchange(held_with_sleepers, acquire) != free_word) futex_wait(&word_, held_with_sleepers);
}

#if WEFT_LOCK_RANKS

namespace {

// Ranks held by this thread. Goroutines never suspend with a lock held except to hand it to their commit step,
// which runs on the same thread, so a count per thread is right.
thread_local constinit std::uint16_t held_count[static_cast<std::size_t>(lock_rank::leaf) + 1] = {};

WEFT_NOINLINE std::uint16_t* held_here() noexcept { return held_count; }

}  // namespace

void lock::check_rank() const noexcept {
  const std::uint16_t* held_ranks = held_here();
  for (auto r = static_cast<std::size_t>(rank_); r <= static_cast<std::size_t>(lock_rank::leaf); ++r) {
    bool same_channel = rank_ == lock_rank::channel && r == static_cast<std::size_t>(rank_);
    WEFT_ASSERT(held_ranks[r] == 0 || same_channel, "lock of rank {} taken while rank {} is held",
                static_cast<int>(rank_), r);
  }
}

void lock::note_acquired() const noexcept { ++held_here()[static_cast<std::size_t>(rank_)]; }

void lock::note_released() const noexcept {
  WEFT_ASSERT(held_here()[static_cast<std::size_t>(rank_)] > 0, "lock of rank {} released by a thread without it",
              static_cast<int>(rank_));
  --held_here()[static_cast<std::size_t>(rank_)];
}

#endif

}  // namespace weft::rt
