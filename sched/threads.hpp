// Ms as threads (threads.cpp): starting them, their sleep without a P, their end.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

inline std::uint64_t present_run() noexcept { return sched.run_number.load(relaxed); }

// --- to begin
void start_first_m();                             // throws std::system_error: without a thread nothing would ever run
int start_spare_m() noexcept;                     // one that idles, also beyond options::max_threads; 0, or an error
[[nodiscard]] bool pass_on(M* m, G* g) noexcept;  // g, and m's P, to another M; false: there is none to be had

// p goes to a new M, as none idled a moment ago. Where no thread is to be had, p idles, and its goroutines go to the
// global queue. spinning: the caller has counted it.
void start_new_m(P* p, bool spinning, std::uint64_t run) noexcept;
void warn_of_no_thread() noexcept;  // there was none (thread_limit.cpp); once

// --- without a P
void stopm(M* m) noexcept;    // sleeps until it is passed a P or the runtime ends
void rouse_dozer() noexcept;  // ends a doze (find.cpp)

// Under sched.mutex: m, which idles, goes on with p; or whichever was the last to idle, false: none does.
void wake_idle_m(M* m, P* p, bool spinning) noexcept;
bool wake_some_idle_m(P* p, bool spinning) noexcept;

// --- while out of threads: under sched.mutex
P* idle_p_to_go_on(const M* m) noexcept;  // for one that lost its P and has a goroutine to run; null: it gives way
bool take_p_for_want_of_thread(M* m) noexcept;  // m would sleep; false: threads do not lack

// An M is gone when it has left the scheduler's loop. Its thread ends then, but for what destructors of the program's
// thread_locals do there, which may take long, or wait for other goroutines.
void note_gone(M* m) noexcept;                   // under sched.mutex
M* take_gone_ms() noexcept;                      // all of them
void join_ms(M* gone, nanos deadline) noexcept;  // frees those whose threads end by then; 0: have ended

}  // namespace weft::rt
