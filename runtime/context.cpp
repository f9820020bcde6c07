#include "runtime/context.hpp"

#include "runtime/sanitizer.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <pthread.h>

namespace weft::rt {

namespace fc = boost::context::detail;

namespace {

// Lies on the stack that is left; read by the arrival before `after` gives that stack away.
struct departure {
  thread_state* thread;
  G* from;
  after_switch after;
  void* arg;
};

// First thing on the stack that was switched to.
thread_state* arrive(fc::transfer_t t) noexcept {
  departure d = *static_cast<departure*>(t.data);
  d.from->context = t.fctx;
  if (WEFT_UNLIKELY(asan_running())) {
    __sanitizer_finish_switch_fiber(d.thread->g->fake_stack, nullptr, nullptr);
  }
  if (d.after) d.after(d.from, d.arg);
  return d.thread;
}

void announce_switch([[maybe_unused]] G* from, G* to) noexcept {
  if (WEFT_UNLIKELY(asan_running())) {
    // A goroutine that ends frees its fake stack; it says so by being dead.
    void** save = from->get_state() == g_state::dead ? nullptr : &from->fake_stack;
    __sanitizer_start_switch_fiber(save, to->stack_lo, static_cast<std::size_t>(to->stack_hi - to->stack_lo));
  }
  if (WEFT_UNLIKELY(tsan_running())) __tsan_switch_to_fiber(to->fiber, 0);
}

void first_frame(fc::transfer_t t) noexcept {
  // Unwinders stop here: this frame has no caller.
#if defined(__x86_64__)
  asm volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
  asm volatile(".cfi_undefined x30");
#endif
  thread_state* ts = arrive(t);
  G* g = ts->g;
  const auto* frame = static_cast<const goroutine_frame*>(g->wake_value);
  g->wake_value = nullptr;
  frame->started(ts);
  g->entry(g->closure);
  frame->ended();
  __builtin_unreachable();
}

}  // namespace

WEFT_NOINLINE thread_state* switch_to(thread_state* ts, G* to, after_switch after, void* arg) noexcept {
  G* from = ts->g;
  departure d{ts, from, after, arg};
  from->park_frame = __builtin_frame_address(0);
  from->exceptions = *ts->exceptions;
  *ts->exceptions = to->exceptions;
  from->saved_errno = *ts->errno_location;
  *ts->errno_location = to->saved_errno;
  to->thread = ts;
  ts->g = to;
  announce_switch(from, to);
  return arrive(fc::jump_fcontext(to->context, &d));
}

void prepare(G* g, const goroutine_frame* frame) noexcept {
  auto* top = static_cast<std::byte*>(g->closure ? g->closure : g->stack_hi);
  top = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{63});
  if (WEFT_UNLIKELY(asan_running())) {
    // The last user of this stack left frames that never returned.
    __asan_unpoison_memory_region(g->stack_lo, static_cast<std::size_t>(top - g->stack_lo));
  }
  if (WEFT_UNLIKELY(tsan_running()) && !g->fiber) g->fiber = __tsan_create_fiber(0);
  g->context = fc::make_fcontext(top, static_cast<std::size_t>(top - g->stack_lo), first_frame);
  g->wake_value = const_cast<goroutine_frame*>(frame);
  g->exceptions = {};
  g->saved_errno = 0;
  g->fake_stack = nullptr;
  g->park_frame = nullptr;
}

void* reserve_closure(G* g, std::size_t size, std::size_t align) noexcept {
  auto room = static_cast<std::size_t>(g->stack_hi - g->stack_lo);
  if (size > room / 4 || align > 4096) return nullptr;
  auto at = (reinterpret_cast<std::uintptr_t>(g->stack_hi) - size) & ~(static_cast<std::uintptr_t>(align) - 1);
  g->closure = reinterpret_cast<void*>(at);
  return g->closure;
}

void adopt_thread_stack(G* g) noexcept {
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* lo;
    std::size_t size;
    if (pthread_attr_getstack(&attr, &lo, &size) == 0) {
      g->stack_lo = static_cast<std::byte*>(lo);
      g->stack_hi = g->stack_lo + size;
    }
    pthread_attr_destroy(&attr);
  }
  if (tsan_running()) g->fiber = __tsan_get_current_fiber();
}

}  // namespace weft::rt
