// The legal moves of a timer, each in one place: which state may follow which.
//
// Code that changes a state names the move, and a move that is not in the table does not compile. At run time a move is
// one compare-and-swap, or a store by the thread that has the timer to itself, and nothing else. An operation that
// meets a state that is impossible there (memory was overwritten, or a timer was freed too early) ends the process, and
// reports the timer and both states.
#pragma once

#include "runtime/fatal.hpp"
#include "timers/timer.hpp"

#include <concepts>
#include <cstdint>

namespace weft::rt {

// A set of states. All members are public, so that it can be a template parameter.
struct timer_states {
  std::uint16_t bits = 0;

  constexpr timer_states(std::same_as<timer_status> auto... s) noexcept
      : bits(static_cast<std::uint16_t>((0U | ... | (1U << static_cast<unsigned>(s))))) {}

  constexpr bool has(timer_status s) const noexcept {
    auto number = static_cast<unsigned>(s);  // an overwritten state may be any byte
    return number < 16 && ((bits >> number) & 1U) != 0;
  }
};

// Armed, in a heap, held by nobody.
inline constexpr timer_states armed_states{timer_status::waiting, timer_status::modified_earlier,
                                           timer_status::modified_later};
// The same, with a stale place in the heap.
inline constexpr timer_states changed_states{timer_status::modified_earlier, timer_status::modified_later};
// In a heap and held by nobody.
inline constexpr timer_states resting_states{timer_status::waiting, timer_status::modified_earlier,
                                             timer_status::modified_later, timer_status::deleted};
// In no heap.
inline constexpr timer_states outside_states{timer_status::no_status, timer_status::removed};

// The table. The operations that make a move are in brackets.
constexpr timer_states legal_moves_from(timer_status from) noexcept {
  using enum timer_status;
  switch (from) {
    case no_status:
    case removed:
      return {waiting,     // [add]
              modifying};  // [change_timer]
    case waiting:
      return {running,    // [run_head]
              modifying,  // [del_timer, change_timer]
              moving,     // [take_all]
              removed};   // [clear]
    case modified_earlier:
    case modified_later:
      return {modifying,  // [del_timer, change_timer]
              moving,     // [clean_head, rebuild, take_all]
              removed};   // [clear]
    case deleted:
      return {removing,   // [take_out]
              modifying,  // [change_timer]
              removed};   // [clear]
    case running:
      return {waiting,     // [run_one, a ticker]
              no_status};  // [run_one]
    case modifying:
      return {deleted,           // [del_timer]
              modified_earlier,  // [change_timer, in place]
              modified_later,    // [change_timer, in place]
              waiting};          // [change_timer, into a heap]
    case removing: return {removed};
    case moving: return {waiting};
  }
  return {};
}

constexpr bool is_legal_move(timer_states from, timer_status to) noexcept {
  for (unsigned s = 0; s < 16; ++s) {
    auto state = static_cast<timer_status>(s);
    if (from.has(state) && !legal_moves_from(state).has(to)) return false;
  }
  return from.bits != 0;
}

// Ends the process. The caller wanted to move t, whose state is `seen`, to `to`.
[[noreturn]] void illegal_move(const timer* t, timer_status seen, timer_status to,
                               const char* caller = __builtin_FUNCTION()) noexcept;

// Moves t to To, if its state is still `seen`, one of From. False: another thread was faster. The fields that were
// written in one state are seen in the next. seq_cst: a thread that makes a timer earlier first takes it and then reads
// the hint (timer_heap.hpp).
template <timer_states From, timer_status To>
  requires(is_legal_move(From, To))
[[nodiscard]] bool try_move(timer* t, timer_status seen) noexcept {
  return t->status.compare_exchange_strong(seen, To, seq_cst, relaxed);
}

template <timer_status From, timer_status To>
  requires(is_legal_move(From, To))
[[nodiscard]] bool try_move(timer* t) noexcept { return try_move<From, To>(t, From); }

// Moves t out of a state that only the caller holds. No other thread changes the state, so a store is enough.
template <timer_status From, timer_status To>
  requires(is_legal_move(From, To))
void finish_move(timer* t, const char* caller = __builtin_FUNCTION()) noexcept {
  timer_status seen = t->status.load(relaxed);
  if (__builtin_expect(seen != From, 0)) illegal_move(t, seen, To, caller);
  t->status.store(To, release);
}

}  // namespace weft::rt
