// The switch: leaves one stack for another on the same thread, straight from goroutine to goroutine.
//
// A goroutine cannot publish itself before it has left its stack: the moment another thread can find it, that thread
// may resume it. So the last step of parking ("commit": unlock the channel, put the G on a queue) is handed to the
// switch as `after`, and runs on the stack that was switched to. By then the departed goroutine's context is saved, and
// nothing but `after` touches its stack until `after` publishes the goroutine.
//
// The thread is the same before and after the jump, but a goroutine that was suspended may come back on any thread.
// What it knew about its thread is stale then, so switch_to returns the new one.
#pragma once

#include "runtime/jump.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

namespace weft::rt {

using after_switch = void (*)(G* departed, void* arg);

void announce_switch(G* from, G* to) noexcept;  // to AddressSanitizer
void announce_arrival(G* g) noexcept;

// Must be called first on the stack that was switched to.
WEFT_NO_FAKE_STACK inline thread_state* arrive(departure d) noexcept {
  if (WEFT_UNLIKELY(asan_running())) announce_arrival(d.thread->g);
  if (d.after) d.after(d.from, d.arg);
  return d.thread;
}

// Suspends ts->g, which runs on the calling thread, and resumes `to`. Returns when another goroutine switches back, and
// returns the thread that ts->g is on then. `to` must be suspended and owned by the caller; `after` may be null.
// Inline, so that all registers are saved once, by the caller. The caller's frame holds no thread-local's address
// (thread.hpp).
WEFT_NO_FAKE_STACK inline thread_state* switch_to(thread_state* ts, G* to, after_switch after, void* arg) noexcept {
  G* from = ts->g;
  from->park_frame = __builtin_frame_address(0);
  exception_state& exceptions = *ts->exceptions;
  from->exceptions = exceptions;
  exceptions = to->exceptions;
  int& error = *ts->errno_location;
  from->saved_errno = error;
  error = to->saved_errno;
  to->thread = ts;
  ts->g = to;
  if (WEFT_UNLIKELY(asan_running())) announce_switch(from, to);
  // Must be called here, and not in a function that begins on one fiber and ends on the other.
  if (WEFT_UNLIKELY(tsan_running())) __tsan_switch_to_fiber(to->own_stack->fiber, 0);
  return arrive(jump({ts, from, after, arg}, from->context, to->context));
}

// What the thread does after a goroutine has ended. If `after` is set, the thread switches to `next`, and calls `after`
// there, which puts the dead goroutine away. If it is null, `next` has got the dead goroutine's stack, and the thread
// calls the function that `next` begins with.
struct last_step {
  G* next;
  after_switch after;
};

// The scheduler's part in the beginning and the end of a goroutine's life.
struct goroutine_life {
  void (*begun)(thread_state*) noexcept;  // called on the new stack, before the goroutine's own code
  last_step (*ended)() noexcept;          // called after that code
};
void set_goroutine_life(const goroutine_life& life) noexcept;

// Gives g, which has not begun, the stack s. The first switch to g calls g->entry(g->closure).
void begin_on(G* g, stack* s) noexcept;

// Passes the stack of `from` on to `to`, which has not begun. `from` is the goroutine that runs on the calling thread,
// and its code has ended. From here on, `to` runs.
void begin_in_place(thread_state* ts, G* from, G* to) noexcept;

// Reserves room on g's stack for a closure that is too large for the G. The stack must not be in use. Returns null if
// the closure would take more than a quarter of the stack, or is aligned to more than 4096 bytes.
void* reserve_closure(G* g, std::size_t size, std::size_t align) noexcept;

// Binds g to the stack that the calling thread already has (an M's own), and describes that stack in *s.
void adopt_thread_stack(G* g, stack* s) noexcept;

}  // namespace weft::rt
