// A timer and its ten states, after Go 1.14–1.22 (runtime/time.go).
//
//   state              meaning                                         in a heap     held for long
//   no_status          never started, or fired once and done           no            yes
//   waiting            armed                                           yes           yes
//   running            its function is about to run                    yes, briefly  no
//   deleted            stopped, not yet taken out                      yes           yes
//   removing           being taken out                                 yes, briefly  no
//   removed            stopped and out, its entry at once, too         no            yes
//   modifying          its fields are being changed                    either        no
//   modified_earlier   its time is in next_when, its place is stale    yes           yes
//   modified_later     likewise                                        yes           yes
//   moving             being put where it belongs                      yes, briefly  no
//
// Who may do what:
//   the owner of the timer (or several: calls may race)   del_timer, and change_timer of one that is in a heap: these
//       take the timer by compare-and-swap, into `modifying`, and never touch the heap's array, so stopping a timer of
//       another P takes no lock
//   who holds the heap's lock                             everything that puts in, moves or removes entries: add, too,
//       and change_timer of one that is in no heap
// A state not held for long is one thread's for a few instructions; others look again. Legal moves: timer_moves.hpp.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

class timer_heap;

enum class timer_status : std::uint8_t {
  no_status,
  waiting,
  running,
  deleted,
  removing,
  removed,
  modifying,
  modified_earlier,
  modified_later,
  moving,
};
const char* describe(timer_status s) noexcept;

struct timer;

// Runs without the heap's lock, on a thread that holds a P, and must not suspend. `due` is the instant that was
// asked for, `seq` the timer's at the time it was due. What else it needs to know is in what was derived from timer.
using timer_function = void (*)(timer*, std::uint64_t seq, nanos due) noexcept;

// As large as a cache line: among a million timers each costs a look into memory. What stopping one and taking it out
// needs comes first, as who derives from it may begin in the middle of a line.
struct timer {
  atomic<timer_status> status{timer_status::no_status};
  atomic<std::uint32_t> references{1};

  // Valid while in a heap. Written with that heap's lock, and read under modifying, which keeps the timer there.
  timer_heap* heap = nullptr;

  // A timer that may die while a heap still holds it (stopped timers stay until they are cleaned out) is counted: the
  // heap holds one reference while the timer is in it. change_timer makes that; add takes over one that the caller has
  // made. Null: the owner's storage outlives its place in a heap (a sleeping goroutine's timer ends only by firing; a
  // poll descriptor is never freed).
  void (*dispose)(timer*) noexcept = nullptr;

  // Written by the owner before add, by change_timer under modifying, by the heap's holder.
  nanos when = 0;
  union {
    nanos next_when = 0;   // the new time of a modified timer
    timer* next_disposed;  // of one that nobody refers to any more
  };
  std::uint64_t seq = 0;
  timer_function function = nullptr;
  nanos period = 0;  // 0: once

  // relaxed: a new reference is made from one that is held.
  void retain() noexcept {
    if (dispose) references.fetch_add(1, relaxed);
  }

  // True: the caller's reference is the only one, so nobody makes another. acquire: it sees what all former holders
  // wrote.
  bool has_one_reference() const noexcept { return dispose && references.load(acquire) == 1; }

  // True: the last reference is gone and the caller calls dispose(this), with no lock held. acq_rel: likewise, and
  // released for whoever is the only holder then.
  [[nodiscard]] bool drop() noexcept {
    return has_one_reference() || (dispose && references.fetch_sub(1, acq_rel) == 1);
  }

  void release() noexcept {
    if (drop()) dispose(this);
  }
};
static_assert(sizeof(timer) == 64);

}  // namespace weft::rt
