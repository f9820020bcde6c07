// Reports unwind, format and demangle: more than a goroutine may have stack left for. They are made on the stack of the
// thread's scheduler, which is suspended while a goroutine runs.
#pragma once

#include "runtime/config.hpp"

namespace weft::rt {

// Whether a report finds room here. Stacks that are none of ours are taken to be large: a thread's, a signal handler's,
// one that the goroutine changed to.
bool stack_is_roomy() noexcept;

// The top of what is free of the scheduler's stack; null: stay here, as there is room, or switching is not our own.
void* roomy_stack() noexcept;

// Calls f(arg) on the stack that ends at `top`. Unwinding from there finds the caller's frames.
void call_on_stack(void* top, void (*f)(void*), void* arg) noexcept;

// f may not suspend: what resumes the scheduler would run over its frames.
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
