// Stopping the world, and changing the number of Ps (world.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Inside the runtime; the caller's P is stopped too. False: some still run, and `deadline` came first, or without one
// the end of run().
bool stop_the_world(nanos deadline = forever) noexcept;
void start_the_world() noexcept;
void stop_for_the_world(M* m) noexcept;  // by an M between goroutines

// Inside the runtime: waits for other stoppers, then stops it. False: run() ends, and a goroutine does not come back
// then; or with a deadline, that came first, and the world goes on.
[[nodiscard]] bool acquire_world(M** m, nanos deadline = forever) noexcept;
void release_world() noexcept;  // starts it again

// So long sysmon, which has other duties, waits for a world to stop (a goroutine in weft::no_preemption keeps its P).
inline constexpr nanos patience_of_sysmon = 10 * millisecond;

// Returns the old number. Nothing happens if run() ends; or if sysmon, which follows the processors, has no more
// patience, or the program has set a number meanwhile. std::bad_alloc
enum class who_sets : bool { program, sysmon };
std::uint32_t set_procs(std::uint32_t n, who_sets by);
P* make_p(std::uint32_t id);
void set_number_of_procs(std::uint32_t n) noexcept;  // while the world is stopped, or has not begun. The Ps are there

}  // namespace weft::rt
