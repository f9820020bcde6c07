// The way back from a wait.
//
// At each call a processor notes where the call will return to, and it predicts that the next return goes where the
// newest note says. It keeps one stack of notes, whatever the program does with its own stacks. So a goroutine that
// waits leaves its notes there, and the returns of the goroutine that goes on are predicted from them. The predictions
// are right if both waited in one place, like two goroutines that yield in the same loop. Otherwise each return is
// predicted wrong, and what the processor did meanwhile is lost: 10 ns each (docs/adr/0027-the-way-back.md).
//
// So a goroutine that waits notes where it would return to, and the goroutine that goes on compares. If it returns to
// the same place, it uses a return. If not, it jumps there. A jump leaves the wrong note where it is, and its target is
// predicted from where it went before. There are two jumps, one upwards and one downwards: each of two goroutines that
// talk to each other has one to itself, which always goes to the same place.
//
// The notes that are left over are wrong for the returns of the functions further out. Without the jumps, these would
// be predicted right if both waits were in one function of the program's that was called from two places. Two returns
// are compared: park's (park.cpp), and that of the function of weft's that the program called (with_predicted_return,
// park.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

namespace weft::rt {

// For a thread: where the goroutine that left it last would have returned to, if it noted that. Not all waits do, so
// these are guesses about guesses. A wrong one only costs time, because the way back itself is on the goroutine's
// stack.
struct ways_back {
  const void* from_park = nullptr;
  const void* from_call = nullptr;
};

// clang makes a call of the jump where a variable's address was passed on, and nothing would be gained.
#if defined(__x86_64__) && !defined(__clang__)

// Returns its argument, by a jump. If a function ends with `return jump_back(value)`, the compiler jumps here, and this
// returns to that function's caller. If the compiler makes a call of it after all, this returns to the function that
// called it, as any function does. Each direction has a jump instruction of its own.
enum class towards : std::uint8_t { above, below };
template <towards, class R>
[[gnu::naked, gnu::noipa, gnu::no_instrument_function]] R jump_back(R) noexcept {
  asm("mov %rdi, %rax\n\t"
      "pop %rcx\n\t"
      ".cfi_adjust_cfa_offset -8\n\t"
      ".cfi_register %rip, %rcx\n\t"
      "jmp *%rcx");
}

// A function that has waited calls this last. `noted` is the way back that the thread has noted for this kind of
// function. R must fit into a register, otherwise the compiler would not jump.
template <class R>
[[gnu::always_inline]] inline R come_back(const void* noted, R value) noexcept {
  static_assert(std::is_pointer_v<R> || std::is_enum_v<R> || std::is_same_v<R, bool>);
  auto to = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  auto guess = reinterpret_cast<std::uintptr_t>(noted);
  if (guess == to) return value;
  return guess < to ? jump_back<towards::above>(value) : jump_back<towards::below>(value);
}

#else

template <class R>
[[gnu::always_inline]] inline R come_back(const void*, R value) noexcept {
  return value;
}

#endif

}  // namespace weft::rt
