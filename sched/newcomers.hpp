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

void make_newcomers_wait() noexcept;  // from now on every dispatch goes by the scheduler's loop, which puts them aside
void let_newcomers_begin() noexcept;  // and no longer

// The turn: the right to begin, which one P has at a time. It comes back when the goroutine that began by it parks,
// yields, ends or blocks.
void return_turn(P* p) noexcept;                   // by p's owner: if p has it
[[nodiscard]] bool end_turn(P* p) noexcept;        // by whoever took p from a call. True: p had it, now the caller does
[[nodiscard]] bool take_turn_away(P* p) noexcept;  // the same, under sched.mutex: what began by it may compute
[[nodiscard]] bool withhold_turn() noexcept;       // the caller has it now. False: some P has
void give_turn_back() noexcept;                    // the caller's

// Goroutines are of one kind if they were started at one place (`kind`). While one of them is watched, its kind is on
// trial; if it computes for long its kind is suspect, else acquitted. The turn is given back afterwards.
void put_on_trial(const void* kind) noexcept;
bool suspect(const void* kind) noexcept;  // false: it was already
void acquit(const void* kind) noexcept;
void make_suspects_wait(bool and_all_others) noexcept;
void let_suspects_begin() noexcept;

}  // namespace weft::rt
