// The way back from a wait.
//
// With each call a processor notes where it will return to, and takes the newest note for where the next return goes.
// It keeps one stack of notes, whatever the program does with its own stacks: who waits leaves its notes there, and who
// goes on returns by them. They are right if both waited in one place, like two that yield in the same loop. Else each
// return is guessed wrong, and what the processor did meanwhile is lost: 10 ns each (docs/adr/0027-the-way-back.md).
//
// So who waits says where it would return to, and who goes on compares. Is it the same, it returns. If not, it jumps
// there. A jump leaves the wrong note where it is, and where it goes is guessed by where it went before. There are two,
// one upwards and one downwards: each of two goroutines that talk to each other has one to itself, and that always goes
// to the same place.
//
// The notes left over are wrong for the returns of the functions further out, which are right without the jumps if both
// waits were in one function of the program's that was called from two places. What is compared are two returns, those
// of park (park.cpp) and of the function of weft's that the program called (with_predicted_return, park.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

namespace weft::rt {

// Of a thread: where the goroutine that left it last would have returned to, if it said so. Not all waits do, so these
// are guesses about guesses: a wrong one costs time, as the way back itself is on the goroutine's stack.
struct ways_back {
  const void* from_park = nullptr;
  const void* from_call = nullptr;
};

// clang makes a call of it where a variable's address was passed on, and nothing would be gained.
#if defined(__x86_64__) && !defined(__clang__)

// Returns its argument, by a jump. Who calls this as the last thing it does, with what it returns, jumps to it, and its
// caller is where this returns to. If it is called after all, it returns to who called it, as any function. For each
// direction it is an instruction of its own.
enum class towards : std::uint8_t { above, below };
template <towards, class R>
[[gnu::naked, gnu::noipa, gnu::no_instrument_function]] R jump_back(R) noexcept {
  asm("mov %rdi, %rax\n\t"
      "pop %rcx\n\t"
      ".cfi_adjust_cfa_offset -8\n\t"
      ".cfi_register %rip, %rcx\n\t"
      "jmp *%rcx");
}

// The last thing that a function does which has waited: `noted` is the thread's way back from its like. R fits into a
// register, else the compiler would not jump.
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
