// A timer and its ten states, after Go 1.14–1.22 (runtime/time.go).
//
//   state              meaning                                         in a heap     held for long
//   no_status          never started, or fired once and done           no            yes
//   waiting            armed                                           yes           yes
//   running            its function is about to run                    yes, briefly  no
//   deleted            stopped, not yet taken out                      yes           yes
//   removing           being taken out                                 yes, briefly  no
//   removed            stopped and taken out; its entry goes at once   no            yes
//   modifying          its fields are being changed                    either        no
//   modified_earlier   its time is in next_when, its place is stale    yes           yes
//   modified_later     the same, but later                             yes           yes
//   moving             being put where it belongs                      yes, briefly  no
//
// Who may do what:
//   the owner of the timer (or several: calls may race)   del_timer, and change_timer of a timer that is in a heap.
//       These take the timer by compare-and-swap, into `modifying`, and never touch the heap's array. So stopping a
//       timer of another P takes no lock.
//   the holder of the heap's lock                         everything that puts in, moves or removes entries. That
//       includes add, and change_timer of a timer that is in no heap.
// A state that is not held for long belongs to one thread for a few instructions; other threads look again. The legal
// moves are in timer_moves.hpp.
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

// The function of a timer. It runs without the heap's lock, on a thread that holds a P, and must not suspend. `due` is
// the instant that was asked for; `seq` is the timer's sequence number when it came due. Whatever else the function
// needs is in the class that derives from timer.
using timer_function = void (*)(timer*, std::uint64_t seq, nanos due) noexcept;

// A timer is as large as a cache line: among a million timers, each one that is touched costs an access to memory. The
// fields that are needed to stop a timer and to take it out come first, since a class that derives from timer may place
// it in the middle of a line.
struct timer {
  atomic<timer_status> status{timer_status::no_status};
  atomic<std::uint32_t> references{1};

  // Valid while the timer is in a heap. Written under that heap's lock. Read in the state modifying, which keeps the
  // timer in that heap.
  timer_heap* heap = nullptr;

  // Frees the timer. Set for a timer whose owner may let go of it while a heap still holds it, since stopped timers
  // stay until they are cleaned out. Such a timer is counted, and a heap holds one reference to each timer in it:
  // change_timer makes that reference; add takes over one of the caller's. Null if the timer's storage outlives its
  // place in a heap: a sleeping goroutine's timer ends only by firing, and a poll descriptor is never freed.
  void (*dispose)(timer*) noexcept = nullptr;

  // Written by the owner before add, by change_timer in the state modifying, and by the holder of the heap's lock.
  nanos when = 0;
  union {
    nanos next_when = 0;   // the new time of a modified timer
    timer* next_disposed;  // of a timer that nothing refers to any more
  };
  std::uint64_t seq = 0;
  timer_function function = nullptr;
  nanos period = 0;  // 0: once

  // relaxed: the caller holds a reference, from which it makes the new one.
  void retain() noexcept {
    if (dispose) references.fetch_add(1, relaxed);
  }

  // True if the caller's reference is the only one; then no other thread can make another. acquire: the caller sees
  // what all former holders wrote.
  bool has_one_reference() const noexcept { return dispose && references.load(acquire) == 1; }

  // Gives up the caller's reference. True: it was the last one, and the caller must call dispose(this), with no lock
  // held. acquire: as above. release: whoever is the only holder afterwards sees what the caller wrote.
  [[nodiscard]] bool drop() noexcept {
    return has_one_reference() || (dispose && references.fetch_sub(1, acq_rel) == 1);
  }

  void release() noexcept {
    if (drop()) dispose(this);
  }
};
static_assert(sizeof(timer) == 64);

}  // namespace weft::rt
