// Tells AddressSanitizer and ThreadSanitizer when a thread changes stacks.
//
// The hooks are weak references: a library built without sanitizers still announces its switches when the
// program it is linked into runs under one.
#pragma once

#include "runtime/config.hpp"

#include <cstddef>

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** old_bottom,
                                                           std::size_t* old_size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
__attribute__((weak)) void __lsan_register_root_region(const void* begin, std::size_t size);
__attribute__((weak)) void* __tsan_get_current_fiber(void);
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace weft::rt {

inline bool asan_running() noexcept { return __sanitizer_start_switch_fiber != nullptr; }
inline bool lsan_running() noexcept { return __lsan_register_root_region != nullptr; }
inline bool tsan_running() noexcept { return __tsan_switch_to_fiber != nullptr; }

}  // namespace weft::rt
