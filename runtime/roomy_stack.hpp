// Reports unwind, format and demangle, for which a goroutine may have too little stack left. So they are made on the
// stack of the thread's scheduler, which is suspended while a goroutine runs.
#pragma once

#include "runtime/config.hpp"

namespace weft::rt {

// True if the present stack has room for a report. Stacks that are not ours count as large: a thread's, a signal
// handler's, one that the goroutine changed to.
bool stack_is_roomy() noexcept;

// Returns the top of the free part of the scheduler's stack. Null: stay on this stack, because it has room, or because
// no goroutine runs here, or the jump is not our own.
void* roomy_stack() noexcept;

// Calls f(arg) on the stack that ends at `top`. Unwinding from there finds the caller's frames.
void call_on_stack(void* top, void (*f)(void*), void* arg) noexcept;

// Calls f, on a roomy stack if there is one. f must not suspend: the scheduler would be resumed, and overwrite f's
// frames.
template <class F>
void on_roomy_stack(F f) noexcept {
  if (void* top = roomy_stack()) {
    call_on_stack(
        top, [](void* at) { (*static_cast<F*>(at))(); }, &f);
  } else {
    f();
  }
}

}  // namespace weft::rt
