// The switch: leaves one stack for another on the same thread, straight from goroutine to goroutine.
//
// What leaves cannot publish itself before it has left: the moment another thread can find it, that thread may
// resume it. So the last step of parking ("commit": unlock the channel, put the G on a queue) is handed to the
// switch as `after` and runs on the stack that was switched to. By the time it runs, the departed goroutine's
// context is saved and nothing touches its stack any more, except `after` itself, until `after` publishes it.
//
// The thread is the same before and after the jump, but a goroutine that was suspended comes back on any thread:
// what it knew about its thread is stale, and switch_to returns the new one.
#pragma once

#include "runtime/jump.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

namespace weft::rt {

using after_switch = void (*)(G* departed, void* arg);

void announce_switch(G* from, G* to) noexcept;  // to AddressSanitizer
void announce_arrival(G* g) noexcept;

// First thing on the stack that was switched to.
WEFT_NO_FAKE_STACK inline thread_state* arrive(departure d) noexcept {
  if (WEFT_UNLIKELY(asan_running())) announce_arrival(d.thread->g);
  if (d.after) d.after(d.from, d.arg);
  return d.thread;
}

// Suspends ts->g, which runs on the calling thread, and resumes `to`. Returns, when somebody switches back, the
// thread it is on then. `to` must be suspended and owned by the caller, `after` may be null.
// Inline: the caller saves all registers once. A caller's frame has no thread-local's address (thread.hpp).
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
  // Here, and in no function that begins on one fiber and ends on the other.
  if (WEFT_UNLIKELY(tsan_running())) __tsan_switch_to_fiber(to->own_stack->fiber, 0);
  return arrive(jump({ts, from, after, arg}, from->context, to->context));
}

// What the thread does after the end of a goroutine: with `after`, it switches to `next` and calls that there, which
// puts the dead one away; without, it calls what `next` begins with, which has got the stack.
struct last_step {
  G* next;
  after_switch after;
};

// How a goroutine's life begins and ends: the scheduler's part of it.
struct goroutine_life {
  void (*begun)(thread_state*) noexcept;  // on the new stack, before the first of the goroutine's own code
  last_step (*ended)() noexcept;          // after the last
};
void set_goroutine_life(const goroutine_life& life) noexcept;

// Gives g, which has not begun, the stack s. The first switch to g calls g->entry(g->closure).
void begin_on(G* g, stack* s) noexcept;

// The stack of `from`, whose code has ended and which runs on the calling thread, goes over to `to`, which has not
// begun: from here on that runs.
void begin_in_place(thread_state* ts, G* from, G* to) noexcept;

// Reserves room for a closure that is too large for the header, on g's stack, which is not in use. Null if it takes
// more than a quarter of it.
void* reserve_closure(G* g, std::size_t size, std::size_t align) noexcept;

// Binds a G to the stack the calling thread already has (an M's own); *s describes it.
void adopt_thread_stack(G* g, stack* s) noexcept;

}  // namespace weft::rt
