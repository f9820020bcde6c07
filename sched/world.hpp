// Stopping the world, and changing the number of Ps (world.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called inside the runtime. Stops all Ps, the caller's included. False: some Ps still run. With a deadline, it has
// passed, and the caller has to start the others again (start_the_world). Without one, the run() ends: no P is started
// again, and the caller has to take back world_stopping and the status of its own P (acquire_world).
[[nodiscard]] bool stop_the_world(nanos deadline = forever) noexcept;
void start_the_world() noexcept;
void stop_for_the_world(M* m) noexcept;  // called by m between goroutines: stops m's P

// Called inside the runtime. Waits for other threads that have stopped the world, then stops it. False: the deadline
// has passed, and the world goes on; or, without a deadline, the run() ends. In this last case a call by a goroutine
// does not return.
[[nodiscard]] bool acquire_world(M** m, nanos deadline = forever) noexcept;
void release_world() noexcept;  // starts the world again

// How long sysmon, which has other duties, waits for the world to stop: a goroutine in weft::no_preemption keeps its P.
inline constexpr nanos patience_of_sysmon = 10 * millisecond;

// Changes the number of Ps, and returns the old one. Does nothing if the run() ends. For sysmon, which follows the
// number of processors, it also does nothing if the world does not stop within patience_of_sysmon, or if the program
// has set a number meanwhile. Throws std::bad_alloc.
enum class who_sets : bool { program, sysmon };
std::uint32_t set_procs(std::uint32_t n, who_sets by);
P* make_p(std::uint32_t id);  // returns P number `id`, and makes it if need be. Throws std::bad_alloc
// Called while the world is stopped, or before it begins. The Ps have been made.
void set_number_of_procs(std::uint32_t n) noexcept;

}  // namespace weft::rt
