// Goroutines that have not begun, while many threads run without a P: they are put aside, and begin by turns. The essay
// is in newcomers.cpp.
#pragma once

#include "sched/scheduler.hpp"

#include <cstddef>

namespace weft::rt {

// Both are called by p's owner. put_newcomer_aside: true if g has not begun, and must not begin now. take_newcomer:
// null if there is none, or none may begin now.
bool put_newcomer_aside(P* p, G* g, bool was_next) noexcept;
G* take_newcomer(P* p) noexcept;

bool newcomers_may_begin() noexcept;  // S3: some are put aside, and the next may begin now
bool newcomers_want(P* p) noexcept;   // for sysmon: they wait for the goroutine that p runs
std::size_t newcomers_aside() noexcept;

void make_newcomers_wait() noexcept;  // from now on every dispatch goes by the scheduler's loop, which puts them aside
void let_newcomers_begin() noexcept;  // ends that

// The turn: the right to begin, which one P has at a time. It comes back when the goroutine that began by it parks,
// yields, ends or blocks.
void return_turn(P* p) noexcept;                   // by p's owner: gives the turn back, if p has it
[[nodiscard]] bool end_turn(P* p) noexcept;        // p was taken from a call. True: p had it, and now the caller has
[[nodiscard]] bool take_turn_away(P* p) noexcept;  // the same, under sched.mutex: the goroutine may compute
[[nodiscard]] bool withhold_turn() noexcept;       // true: the caller has it now. False: some P has
void give_turn_back() noexcept;                    // gives back the turn that the caller has

// Goroutines that were started at one place are of one kind (`kind`). While one of them is watched, its kind is on
// trial. If it computes for long, its kind is suspect, else it is acquitted. The turn is given back afterwards.
void put_on_trial(const void* kind) noexcept;
bool suspect(const void* kind) noexcept;  // false: it was suspect already
void acquit(const void* kind) noexcept;
void make_suspects_wait(bool and_all_others) noexcept;
void no_suspect_at_once() noexcept;  // one that began without the turn has lost its P
void let_suspects_begin() noexcept;

}  // namespace weft::rt
