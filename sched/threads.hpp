// Ms as threads (threads.cpp): how they start, sleep without a P, and end.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

inline std::uint64_t present_run() noexcept { return sched.run_number.load(relaxed); }

// --- starting
void start_first_m();          // throws std::system_error, as without a thread nothing would ever run
int start_spare_m() noexcept;  // starts an M that idles, even beyond options::max_threads. Returns 0 or an errno value

// Passes g on to another M, together with m's P. False: there is no other M to be had.
[[nodiscard]] bool pass_on(M* m, G* g) noexcept;

// Starts an M that runs p, since none idled a moment ago. If no thread is to be had, p idles and its goroutines go to
// the global queue. spinning: the caller has counted the new M.
void start_new_m(P* p, bool spinning, std::uint64_t run) noexcept;
void warn_if_all_are_held() noexcept;  // out of threads: warns once if none has come by for long (thread_limit.cpp)

// --- without a P
void stopm(M* m) noexcept;    // m sleeps until it is passed a P, or the runtime ends
void rouse_dozer() noexcept;  // ends a doze (doze.cpp)

// Called under sched.mutex. Passes p to an idle M: to m, or to the one that went idle last. False: no M idles. `rest`
// wakes it, when the mutex is free again.
void wake_idle_m(M* m, P* p, bool spinning, late_wakeup& rest) noexcept;
bool wake_some_idle_m(P* p, bool spinning, late_wakeup& rest) noexcept;

// --- called under sched.mutex
// Returns an idle P for m, which lost its P and has a goroutine to run. Null: the goroutine has to give way.
P* idle_p_to_go_on(const M* m) noexcept;
// While out of threads: takes an idle P for an M that would sleep otherwise, or for m. Null, false: there is none.
P* p_for_want_of_thread() noexcept;
bool take_p_for_want_of_thread(M* m) noexcept;
// Has sysmon start an M, if one is still wanted then.
void want_m_from_sysmon() noexcept;

// An M is gone when it has left the scheduler's loop. Its thread ends then, after the destructors of the program's
// thread_locals, which may take long, or wait for other goroutines.
void note_gone(M* m) noexcept;                   // called under sched.mutex
M* take_gone_ms() noexcept;                      // takes the list of all Ms that are gone
void join_ms(M* gone, nanos deadline) noexcept;  // joins and frees those whose threads end by `deadline`; 0: at once

}  // namespace weft::rt
