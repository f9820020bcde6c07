// The scheduler's verbs. What Go's proc.go has, too, has its name and meaning. The essay is in proc.cpp.
#pragma once

#include "netpoll/poll_desc.hpp"
#include "runtime/report.hpp"
#include "sched/park.hpp"

#include <string_view>

namespace weft::rt {

// --- M and P (proc.cpp)
// One more M shall look for work, if a P idles and nobody looks. `soon`: the work is what this P will most likely do
// next itself (runnext), so an M that dozes may finish its doze (find.cpp). `to_poll`: nothing is ready, but somebody
// has to sleep in the poller.
enum class help : std::uint8_t { now, soon, to_poll };
void wakep(help h = help::now) noexcept;
void startm(P* p, bool spinning) noexcept;  // an M runs p (null: an idle one); spinning: the caller has counted it
void start_first_m();                       // throws std::system_error: without a thread nothing would ever run
void warn_of_no_thread() noexcept;          // startm found none (thread_limit.cpp); once
void wake_idle_m(M* m, P* p, bool spinning) noexcept;  // sched: m, which idles, goes on with p
int start_spare_m() noexcept;                     // one that idles, also beyond options::max_threads; 0, or an error
[[nodiscard]] bool pass_on(M* m, G* g) noexcept;  // g, and m's P, to another M; false: there is none to be had
void stopm(M* m) noexcept;                        // sleeps until it is passed a P or the runtime ends
void handoffp(P* p) noexcept;                     // the caller owns p and cannot run it
void acquirep(M* m, P* p) noexcept;
P* releasep(M* m) noexcept;
void m_main(M* m) noexcept;      // an M's life
void join_gone_ms() noexcept;    // Ms whose threads have ended
void wake_sysmon() noexcept;     // sched: ends its deep sleep
void hurry_sysmon() noexcept;    // ends its pause, if that is long
void idle_p_put(P* p) noexcept;  // sched
P* idle_p_get() noexcept;        // sched
// sched: for an M that lost its P and has a goroutine to run. Null: it gives way.
P* idle_p_to_go_on(const M* m) noexcept;
bool take_p_for_want_of_thread(M* m) noexcept;  // sched: m would sleep; false: threads do not lack
void start_spinning(M* m) noexcept;
void resetspinning(M* m) noexcept;
bool timer_wants_poller() noexcept;  // nobody sleeps there, and sysmon might be too late for a timer

// --- queues (runqueues.cpp)
void runqput_full(P* p, G* g) noexcept;           // the ring was full
void global_put(G* g) noexcept;                   // sched
bool anything_queued() noexcept;                  // S3
bool work_in_rings() noexcept;                    // D2: what is not some P's very next
G* global_one(P* p, std::uint32_t max) noexcept;  // as global_get; takes the lock, if there is any
G* global_get(P* p, std::uint32_t max) noexcept;  // sched: one to run, more into p's ring

// At the tail.
inline void runqput(P* p, G* g) noexcept {
  if (WEFT_UNLIKELY(!p->runq.put(g, run_queue::barrier::publish))) runqput_full(p, g);
}

// g is the next to run; what was next before goes to the tail.
inline help runqput_next(P* p, G* g) noexcept {
  G* before = p->runq.put_next(g);
  if (!before) return help::soon;
  runqput(p, before);
  return help::now;
}

// g, which p's owner took from p's queue, goes to its tail. Nobody could see it meanwhile, so it is made ready anew.
inline void put_back(P* p, G* g) noexcept {
  runqput(p, g);                                  // A1
  if (sched.idle_ps.load(seq_cst) != 0) wakep();  // A2
}

// --- an M whose goroutine cannot go on just now (enter.cpp)
// The goroutine goes to the end of the global queue and its M looks for something else; an M without a P goes to sleep
// there. Inside the runtime; returns on the M that picked the goroutine up.
M* give_way(M* m) noexcept;

// --- goroutines that have not begun, beside many threads without a P (newcomers.cpp)
bool put_newcomer_aside(P* p, G* g) noexcept;  // by p's owner; true: g has not begun, and shall not just now
G* take_newcomer(P* p) noexcept;               // by p's owner; null: there is none, or it is nobody's turn
bool newcomers_may_begin() noexcept;           // S3: some are put aside, and the next may begin now
std::size_t newcomers_aside() noexcept;
bool newcomers_want(P* p) noexcept;   // sysmon: they wait for the goroutine that p runs
void make_newcomers_wait() noexcept;  // from now on, or go on: each P goes by the scheduler's loop
void let_newcomers_begin() noexcept;
void return_turn(P* p) noexcept;                   // by p's owner, if p has it: what began by it parks, yields or ends
[[nodiscard]] bool take_turn_away(P* p) noexcept;  // sched: by whoever took p; false: it was not there
[[nodiscard]] bool keep_turn(
    P* p) noexcept;  // by whoever took p from a call: its goroutine blocks, the turn is the caller's
[[nodiscard]] bool withhold_turn() noexcept;  // false: some P has it
void give_turn_back() noexcept;               // what was taken away or withheld
bool suspect(const void* kind) noexcept;      // one that was started there computes for long; false: nothing new
void acquit(const void* kind) noexcept;       // one does not; the turn is given back afterwards
void make_suspects_wait() noexcept;
void let_suspects_begin() noexcept;

// --- finding work (find.cpp)
G* find_runnable(M* m, bool* inherit) noexcept;
void time_is_up(P* p) noexcept;   // by p's owner: a time slice was used up, so the next one that is woken may go first
nanos earliest_timer() noexcept;  // of all Ps; 0: none

// --- locked threads (locked.cpp)
void stop_locked_m(M* m) noexcept;
void start_locked_m(M* m, G* g) noexcept;
void start_some_locked_m() noexcept;  // while threads lack: one whose goroutine is in the global queue
[[nodiscard]] M* lock_os_thread(M* m, int* error) noexcept;  // *error: 0, or why no thread is left for the others
void unlock_os_thread(M* m) noexcept;

// --- pinned goroutines (pin.cpp)
void pin(M* m) noexcept;
void unpin(M* m) noexcept;
void deliver_pinned(M* m, G* g) noexcept;  // m has picked g, which is another M's; m may be without a P then
G* take_pinned(M* m) noexcept;             // one that is ready, or null
bool take_p_for_pinned(M* m) noexcept;     // sched: some are ready; false: they are in the global queue, as no P idles
// m's goroutine goes on on another M, if there is one to be had (enter.cpp).
[[nodiscard]] M* leave_thread(M* m) noexcept;

// --- WEFT_DEBUG=hazard (hazard.cpp)
bool must_migrate(const M* m, const G* g) noexcept;  // g, which m has picked, was suspended on m
[[nodiscard]] M* suspend_in_hazard(M* m, after_switch commit, void* arg) noexcept;
void forget_held_locks() noexcept;  // of what ran on this thread before

// --- taking Ps, stopping the world (preempt.cpp, world.cpp)
[[nodiscard]] bool detach_running(P* p) noexcept;  // sched: takes p from an M in user code; the caller owns p then
void forget_detached(M* m) noexcept;               // sched: it came back
void note_detached(M* m, bool computes) noexcept;  // sched: what it does without a P
// Inside the runtime; the caller's P is stopped too. False: some still run, and `deadline` came first, or without one
// the end of run().
bool stop_the_world(nanos deadline = forever) noexcept;
void start_the_world() noexcept;
// Inside the runtime: waits for other stoppers, then stops it. False: run() ends. A goroutine does not come back then.
[[nodiscard]] bool acquire_world(M** m) noexcept;
void release_world() noexcept;             // starts it again
void stop_for_the_world(M* m) noexcept;    // by an M between goroutines
std::uint32_t set_procs(std::uint32_t n);  // returns the old number. Nothing happens if run() ends. std::bad_alloc
P* make_p(std::uint32_t id);

// --- system calls (syscall.cpp)
void enter_syscall() noexcept;
void exit_syscall() noexcept;
M* finish_syscall(M* m) noexcept;  // from enter_slow

[[nodiscard]] bool retake_syscall(P* p) noexcept;  // true: the caller owns p

// --- spawning (spawn.cpp)
G* spawn_begin(std::size_t stack_size);  // 0: default. Throws std::bad_alloc, std::logic_error
void spawn_abort(G* g) noexcept;
std::uint64_t spawn_commit(G* g) noexcept;  // returns its id
void* large_closure_room(G* g, std::size_t size, std::size_t align);
inline void* closure_room(G* g, std::size_t size, std::size_t align) {  // null: too large. Throws std::bad_alloc
  if (WEFT_LIKELY(size <= sizeof g->small_closure && align <= 16)) return g->closure = g->small_closure;
  return large_closure_room(g, size, align);
}
bool begins_at_once(const P* p, const G* g) noexcept;    // there is a stack for it: no system call is needed
void begin(P* p, G* g) noexcept;                         // g has not begun: now it can be switched to
void recycle(P* p, G* g) noexcept;                       // g has ended, and nobody is on its stack
void empty_caches(P* p) noexcept;                        // of free Gs and stacks; the caller owns p
void empty_idle_caches(M* m) noexcept;                   // of m's P and of idle ones
void empty_all_caches() noexcept;                        // of all Ps; nobody runs
void begin_room_for_goroutines(std::size_t stack_size);  // as a run() begins; throws std::bad_alloc
void make_room_for_goroutines();                         // throws std::bad_alloc
std::size_t count_goroutines() noexcept;

// --- timers and I/O (timing.cpp, io.cpp)
void arm_timer(M* m, timer* t) noexcept;  // t->when etc. are set; the heap was asked to make_room
bool rearm_timer(M* m, timer* t, const timer_setting& to);
[[nodiscard]] M* sleep_until(M* m, nanos deadline);
// Sets the deadline of a descriptor's direction: 0 none, < 0 passed. A waiting goroutine is woken if it has passed.
// Throws std::bad_alloc, and then nothing has changed.
void set_io_deadline(M* m, poll_desc* pd, poll_mode mode, nanos deadline);
void wake_net_poller(nanos when) noexcept;
void poll_network(nanos delay, g_list& woken) noexcept;  // foreign threads among the woken are woken at once
void poll_network_punctually(nanos until, g_list& woken) noexcept;
[[nodiscard]] M* io_wait(M* m, poll_desc* pd, poll_mode mode, poll_status* status) noexcept;
void let_threads_wait_for_io() noexcept;    // a run() begins
void send_threads_away_from_io() noexcept;  // it ends: threads of the user's that wait are told "closing"

// --- life and death (lifecycle.cpp, dead.cpp, dump.cpp)
// sched. What a thread of the program's began, or took, in that run() is of no use any more: it may stand still while
// one ends and the next begins.
bool is_over(std::uint64_t run) noexcept;
void abandon(G* g) noexcept;                           // it never runs any more
void start_runtime(const scheduler_options& options);  // throws std::system_error, std::bad_alloc, std::logic_error
void stop_runtime() noexcept;                          // by the thread that started it: see lifecycle.cpp
void check_dead() noexcept;                            // sched
void dump_goroutines(int fd, dump_of what, names n) noexcept;
[[noreturn]] void throw_not_running(const char* what);
inline void throw_if_not_running(const char* what) {
  if (WEFT_UNLIKELY(!sched.running.load(acquire))) throw_not_running(what);
}

}  // namespace weft::rt
