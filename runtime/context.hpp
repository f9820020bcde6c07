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

#include "runtime/thread.hpp"

namespace weft::rt {

using after_switch = void (*)(G* departed, void* arg);

// Suspends ts->g, which runs on the calling thread, and resumes `to`. Returns, when somebody switches back, the
// thread it is on then. `to` must be suspended and owned by the caller, `after` may be null.
thread_state* switch_to(thread_state* ts, G* to, after_switch after, void* arg) noexcept;

// Prepares g so that the first switch to it calls g->entry(g->closure) on its own stack; when that returns, the
// goroutine ends by `ended(ts)`, which never returns. `started` runs first, right after the arrival.
struct goroutine_frame {
  void (*started)(thread_state*) noexcept;
  void (*ended)() noexcept;
};
void prepare(G* g, const goroutine_frame* frame) noexcept;

// Reserves `size` bytes for a closure on g's stack, which is not in use. Null if it takes more than a quarter of it.
void* reserve_closure(G* g, std::size_t size, std::size_t align) noexcept;

// Binds a G to the stack the calling thread already has (an M's own).
void adopt_thread_stack(G* g) noexcept;

}  // namespace weft::rt
