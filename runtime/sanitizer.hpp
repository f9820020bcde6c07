// Tells AddressSanitizer and ThreadSanitizer when a thread changes stacks, and Valgrind where stacks are.
//
// The sanitizers' hooks are weak references: a library built without sanitizers still announces its switches when the
// program it is linked into runs under one.
#pragma once

#include "runtime/config.hpp"

#include <cstddef>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** old_bottom,
                                                           std::size_t* old_size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
__attribute__((weak)) void* __asan_addr_is_in_fake_stack(void* fake_stack, void* address, void** begin, void** end);
__attribute__((weak)) void __lsan_register_root_region(const void* begin, std::size_t size);
__attribute__((weak)) void* __tsan_get_current_fiber(void);
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

// AddressSanitizer keeps locals whose address is taken on a "fake stack" beside the stack. A goroutine that ends gives
// up its fake stack in the middle of the switch, so the locals of the switch must lie on the stack itself.
#define WEFT_NO_FAKE_STACK __attribute__((no_sanitize("address")))

namespace weft::rt {

inline bool asan_running() noexcept { return __sanitizer_start_switch_fiber != nullptr; }
inline bool lsan_running() noexcept { return __lsan_register_root_region != nullptr; }
inline bool tsan_running() noexcept { return __tsan_switch_to_fiber != nullptr; }

#if defined(VALGRIND_STACK_REGISTER)
inline const bool under_valgrind = [] { return RUNNING_ON_VALGRIND != 0; }();

// Tells Valgrind of a stack that is never unmapped. Otherwise a switch looks to Valgrind like a very large frame.
inline void tell_valgrind_of_stack(const void* lo, const void* hi) noexcept {
  if (under_valgrind) VALGRIND_STACK_REGISTER(lo, hi);
}

// Tells Valgrind that what was popped off a stack may be used again, with contents that mean nothing.
inline void tell_valgrind_of_use(const void* lo, std::size_t size) noexcept {
  if (WEFT_UNLIKELY(under_valgrind)) VALGRIND_MAKE_MEM_UNDEFINED(lo, size);
}
#else
inline constexpr bool under_valgrind = false;
inline void tell_valgrind_of_stack(const void*, const void*) noexcept {}
inline void tell_valgrind_of_use(const void*, std::size_t) noexcept {}
#endif

}  // namespace weft::rt
