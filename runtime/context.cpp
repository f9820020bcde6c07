#include "runtime/context.hpp"

#include <pthread.h>
#include <utility>

namespace weft::rt {

namespace {

constinit goroutine_life life{};

// Unwinders stop at this frame, because it has no caller. It is not noexcept, so that an exception that gets this far
// has no handler.
WEFT_NO_FAKE_STACK void first_frame(thread_state* thread, G* from, after_switch after, void* arg) {
#if defined(__x86_64__)
  asm volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
  asm volatile(".cfi_undefined x30");
#endif
  thread_state* ts = arrive({thread, from, after, arg});
  G* g = ts->g;
  life.begun(ts);
  for (;;) {
    g->entry(g->closure);
    last_step l = life.ended();
    // The switch is made here and not in ended(): a call that never returns would make the processor mispredict where
    // the next goroutine's calls return to (way_back.hpp). Here no call is open, because this frame was entered by a
    // jump.
    if (l.after) switch_to(g->thread, l.next, l.after, nullptr);
    WEFT_ASSERT(!l.after, "goroutine {} ran on after its end", g->id);
    g = l.next;
  }
}

}  // namespace

WEFT_NO_FAKE_STACK void announce_switch(G* from, G* to) noexcept {
  // Null frees the fake stack. That is for a goroutine that ends: it is dead by now.
  void** save = from->get_state() == g_state::dead ? nullptr : &from->fake_stack;
  const stack* s = to->own_stack;
  __sanitizer_start_switch_fiber(save, s->lo, static_cast<std::size_t>(s->hi - s->lo));
}

WEFT_NO_FAKE_STACK void announce_arrival(G* g) noexcept {
  __sanitizer_finish_switch_fiber(g->fake_stack, nullptr, nullptr);
}

void set_goroutine_life(const goroutine_life& l) noexcept { life = l; }

// The last frames of a goroutine never return, so ThreadSanitizer regards these calls as open. It has room for 65,536
// open calls in a fiber. A new fiber for each goroutine would be expensive, so a fiber is used this many times.
constexpr std::uint32_t fiber_uses_at_most = 1000;

void begin_on(G* g, stack* s) noexcept {
  g->own_stack = s;
  s->user = g;
  auto* top = static_cast<std::byte*>(g->closure);
  if (top < s->lo || top >= s->hi) top = s->hi;
  top = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{63});
  // The last user of this stack left poisoned frames, because they never returned.
  if (WEFT_UNLIKELY(asan_running())) __asan_unpoison_memory_region(s->lo, static_cast<std::size_t>(top - s->lo));
  if (WEFT_UNLIKELY(tsan_running())) {
    if (s->fiber && ++s->fiber_uses >= fiber_uses_at_most) {
      __tsan_destroy_fiber(s->fiber);
      s->fiber = nullptr;
      s->fiber_uses = 0;
    }
    if (!s->fiber) s->fiber = __tsan_create_fiber(0);
  }
  g->context = make_context<first_frame>(top, g->floating);
  g->exceptions = {};
  g->saved_errno = 0;
}

void begin_in_place(thread_state* ts, G* from, G* to) noexcept {
  to->own_stack = std::exchange(from->own_stack, nullptr);
  to->own_stack->user = to;
  to->thread = ts;
  ts->g = to;
  *ts->exceptions = {};
  *ts->errno_location = 0;
  to->floating.set_here();  // even if it is set already: to ask takes stmxcsr, which takes longer
}

void* reserve_closure(G* g, std::size_t size, std::size_t align) noexcept {
  const stack* s = g->own_stack;
  auto room = static_cast<std::size_t>(s->hi - s->lo);
  if (size > room / 4 || align > 4096) return nullptr;
  auto at = (reinterpret_cast<std::uintptr_t>(s->hi) - size) & ~(static_cast<std::uintptr_t>(align) - 1);
  g->closure = reinterpret_cast<void*>(at);
  tell_valgrind_of_use(s->lo, room);
  if (WEFT_UNLIKELY(asan_running())) __asan_unpoison_memory_region(g->closure, size);  // as in begin_on
  return g->closure;
}

void adopt_thread_stack(G* g, stack* s) noexcept {
  g->own_stack = s;
  s->user = g;
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* lo;
    std::size_t size;
    if (pthread_attr_getstack(&attr, &lo, &size) == 0) {
      s->lo = static_cast<std::byte*>(lo);
      s->hi = s->lo + size;
    }
    pthread_attr_destroy(&attr);
  }
  if (tsan_running()) s->fiber = __tsan_get_current_fiber();
}

}  // namespace weft::rt
