// Goroutines that have not begun, beside many threads without a P: they are put aside, and begin by turns. The essay is
// in newcomers.cpp.
#pragma once

#include "sched/scheduler.hpp"

#include <cstddef>

namespace weft::rt {

// By p's owner. True: g has not begun, and shall not just now. Null: there is none, or it is nobody's turn.
bool put_newcomer_aside(P* p, G* g, bool was_next) noexcept;
G* take_newcomer(P* p) noexcept;

bool newcomers_may_begin() noexcept;  // S3: some are put aside, and the next may begin now
bool newcomers_want(P* p) noexcept;   // sysmon: they wait for the goroutine that p runs
std::size_t newcomers_aside() noexcept;

// From now on each P goes by the scheduler's loop; and that ends.
void make_newcomers_wait() noexcept;
void let_newcomers_begin() noexcept;

// The turn. What began by it parks, yields, ends or blocks: it comes back (p's owner), or is the caller's then (who
// took p). end_turn and take_turn_away: true if p had it.
void return_turn(P* p) noexcept;
[[nodiscard]] bool end_turn(P* p) noexcept;
[[nodiscard]] bool take_turn_away(P* p) noexcept;  // under sched.mutex; by whoever took p, what began by it may compute
[[nodiscard]] bool withhold_turn() noexcept;       // false: some P has it
void give_turn_back() noexcept;                    // what was ended, taken away or withheld

// kind: where a goroutine was started. One of them is on trial, until it turns out that it computes for long (false:
// that was known), or does not: the turn is given back afterwards.
void put_on_trial(const void* kind) noexcept;
bool suspect(const void* kind) noexcept;
void acquit(const void* kind) noexcept;
void make_suspects_wait(bool and_all_others) noexcept;
void let_suspects_begin() noexcept;

}  // namespace weft::rt
