#include "runtime/roomy_stack.hpp"

#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

bool stack_is_roomy() noexcept {
  constexpr std::ptrdiff_t enough = 128 * 1024;  // for demangling
  const thread_state* ts = this_thread_or_null();
  const stack* s = ts && ts->g ? ts->g->own_stack : nullptr;
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return !s || here < s->lo || here >= s->hi || here - s->lo > enough;
}

#if defined(__x86_64__)

void* roomy_stack() noexcept {
  const thread_state* ts = this_thread_or_null();
  if (stack_is_roomy() || !ts->scheduler || ts->g->kind != g_kind::goroutine) return nullptr;
  // The scheduler's context is its stack pointer, and nothing that it needs lies below (jump.hpp).
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(ts->scheduler->context) & ~std::uintptr_t{63});
}

// Unwinders find the frame by %rbp, wherever the stack pointer is.
[[gnu::naked]] WEFT_NOINLINE void call_on_stack(void*, void (*)(void*), void*) noexcept {
  asm("push %rbp\n\t"
      ".cfi_def_cfa_offset 16\n\t"
      ".cfi_offset %rbp, -16\n\t"
      "mov %rsp, %rbp\n\t"
      ".cfi_def_cfa_register %rbp\n\t"
      "mov %rdi, %rsp\n\t"
      "mov %rdx, %rdi\n\t"
      "call *%rsi\n\t"
      "mov %rbp, %rsp\n\t"
      "pop %rbp\n\t"
      ".cfi_def_cfa %rsp, 8\n\t"
      "ret");
}

#else

void* roomy_stack() noexcept { return nullptr; }
void call_on_stack(void*, void (*f)(void*), void* arg) noexcept { f(arg); }

#endif

}  // namespace weft::rt
