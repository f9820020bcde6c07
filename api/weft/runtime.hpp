// Running: the runtime's start and end, and what concerns the runtime as a whole.
//
// In these headers, *anywhere* means: from a goroutine, or from any other thread of the process, which then blocks as a
// thread. *Goroutine only* means: from a goroutine; elsewhere the call throws std::logic_error. A signal handler calls
// nothing of weft (io::signal_channel takes its place).
#pragma once

#include <weft/detail/config.hpp>
#include <weft/detail/time.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

// Durations may have any unit. A duration that is too long to fit into nanoseconds lasts for ever.
struct options {
  // How many goroutines execute at once. 0: the environment variable WEFT_PROCS, or else the number of CPUs that this
  // process may use (affinity and the cgroup's CPU quota). That number is looked up again once a second, until somebody
  // calls set_procs.
  unsigned procs = 0;
  // Bytes of address space for each goroutine's stack: at least 16 KiB, rounded up to an even number of pages; 0: 256
  // KiB. Memory is used only as it is touched, unless the process has called mlockall(MCL_FUTURE) without MCL_ONFAULT.
  std::size_t stack_size = 256 * 1024;
  // How many threads the runtime may start. While all of them are blocked, the goroutines wait; the runtime says so on
  // stderr, once. Up to this many goroutines may be tied to their threads at once (lock_os_thread); one more thread
  // then serves the other goroutines. If that many threads run and those to which no goroutine is tied all block,
  // nobody sees to timers: a tied goroutine's sleep, too, ends only when one of these threads is back.
  unsigned max_threads = 10000;
  // How often the runtime does its housekeeping, such as giving back the memory of free stacks. Less than 1 ms counts
  // as 1 ms.
  detail::any_duration force_tick_period = std::chrono::minutes(2);
  // If every goroutine is asleep and nothing can wake one: report that and exit with code 2. A timer does not count if
  // nobody has waited for its channel since it was set, and neither does a sleep or a timer that lasts for ever. A
  // function of on_forced_tick counts, since it may wake a goroutine.
  bool deadlock_check = true;
  // SIGQUIT prints every goroutine and exits with code 2, unless an io::signal_channel receives it. False: the signal's
  // disposition is untouched.
  bool sigquit_dump = true;
  // How long run() waits, after main has returned, for goroutines that compute or block. A channel value's move
  // constructor or destructor that does so inside an operation of weft is waited for beyond that.
  detail::any_duration shutdown_grace = std::chrono::seconds(1);
  // Record how much of their stacks the goroutines use, for stack_high_water(). Each goroutine then takes some
  // microseconds longer to end.
  bool measure_stacks = false;
};

namespace detail {
// A program that is compiled with another standard library than weft was does not link: the name of run_main says why.
#if defined(_LIBCPP_VERSION)
struct compiled_with_libcxx {};
using standard_library = compiled_with_libcxx;
#else
struct compiled_with_libstdcxx {};
using standard_library = compiled_with_libstdcxx;
#endif
WEFT_API void run_main(const options& o, void (*main)(void*), void* arg, standard_library);
WEFT_API void enter_blocking() noexcept;
WEFT_API void leave_blocking() noexcept;

struct blocking_scope {
  blocking_scope() noexcept { enter_blocking(); }
  ~blocking_scope() { leave_blocking(); }
  blocking_scope(const blocking_scope&) = delete;
  blocking_scope& operator=(const blocking_scope&) = delete;
};
}  // namespace detail

// Starts the runtime, runs main as a goroutine, and returns when main returns: its int, or 0 if it returns void. An
// exception that leaves main comes out of run(). run() may be called again afterwards, and starts afresh.
//
// run() does not wait for the remaining goroutines to finish: they stop where they wait, or at their next call into
// weft, and never run again. What their stacks own is leaked. For goroutines that compute or block, run() waits for at
// most shutdown_grace. One that has not called weft by then goes on, on its own thread, until that call; what it refers
// to must outlive run(). Calls of weft/sync.hpp that find nothing to wait for may not stop it, and neither may calls
// that only tell something, such as size() or id().
//
// If main ends by exit_goroutine(), run() does not return: the other goroutines go on, and when none of them can, that
// is a deadlock. From the first run() on, weft has a handler for SIGSEGV, which passes on everything but a goroutine's
// stack overflow.
//
// Throws std::logic_error if it is called from a goroutine, or while another run() is under way; std::invalid_argument
// for procs above 1024, max_threads 0 or a negative duration; std::bad_alloc; and std::system_error for errors of the
// system.
template <class F>
int run(F main, const options& o = {}) {
  static_assert(std::is_invocable_v<F>, "weft::run(main): main takes no arguments");
  using R = std::invoke_result_t<F>;
  static_assert(std::is_void_v<R> || std::is_convertible_v<R, int>, "weft::run(main): main returns int or void");
  struct state {
    F& main;
    int code = 0;
  } s{main};
  detail::run_main(o,
                   [](void* arg) {
                     auto& st = *static_cast<state*>(arg);
                     if constexpr (std::is_void_v<R>) {
                       std::invoke(std::move(st.main));
                     } else {
                       st.code = std::invoke(std::move(st.main));
                     }
                   },
                   &s, {});
  return s.code;
}

// Returns how many goroutines execute at once; 0 while no runtime is running. Anywhere.
WEFT_API unsigned procs() noexcept;

// Changes how many goroutines execute at once, and returns the old value. Run queues and timers move along. Anywhere,
// while a runtime is running; otherwise it throws std::logic_error. Throws std::invalid_argument if n is 0 or more than
// 1024.
WEFT_API unsigned set_procs(unsigned n);

// Returns the number of goroutines alive now; 0 while no runtime is running. Main is included, and so are the
// goroutines that some calls start while they last (a connection with a context), but not lookups by name. A goroutine
// that was just waited for may still be on its last steps in another thread of the runtime, and counts until it has
// ended. Anywhere.
WEFT_API std::size_t num_goroutines() noexcept;

// Lets others run: everything that is runnable now gets its turn before this goroutine goes on. A goroutine that
// another thread of the runtime has taken over from this one may begin a moment later; and so may one that is ready on
// a thread whose goroutine computes, if this goroutine yields on. Anywhere; another thread yields as a thread.
WEFT_API void yield() noexcept;

// Calls f(args...), which may block its thread (a system call, a library). Other goroutines run on another thread
// meanwhile. Each such call has a thread to itself until f returns; only options::max_threads limits how many there
// are. Returns what f returns, or throws what it throws. Anywhere. If f calls weft and that call enters the runtime, as
// most do, the announcement ends: what blocks after that call is unannounced.
template <class F, class... Args>
std::invoke_result_t<F, Args...> blocking(F&& f, Args&&... args) {
  detail::blocking_scope scope;
  return std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
}

// lock_os_thread ties the calling goroutine to the thread that it runs on: no other goroutine runs there, and this one
// runs nowhere else. unlock_os_thread undoes that. The calls nest. What the goroutine changes of its thread
// (processors, priority, namespaces) stays with that thread: weft starts none that runs goroutines from a tied one. A
// goroutine that ends while it is tied ends the thread, too; only where other goroutines are pinned does the thread
// stay, and what was changed may go on to a thread that is started there, for one that is about to block. As a new one
// takes tens of microseconds, unlock what is as it was before. If options::max_threads goroutines are tied already,
// lock_os_thread waits until one of them is not any more. It throws std::system_error, and ties nothing, if the other
// goroutines would be left without a thread. Unlocking what is not locked is fatal. Goroutine only.
WEFT_API void lock_os_thread();
WEFT_API void unlock_os_thread();

// As long as a pin lives, the calling goroutine runs on no other thread than the one it is on now. Unlike with
// lock_os_thread, other goroutines run on that thread, too, while this one is suspended. A pin is for what is bound to
// a thread across suspensions, such as thread_local variables, at a fraction of the price of lock_os_thread. Pins nest.
// Goroutine only. A pin must end in the goroutine that began it; anything else is fatal.
//
// When the pinned goroutine is ready, it goes on as soon as its thread is free. So if another goroutine computes there,
// or blocks without weft::blocking, the pinned one waits until that goroutine next calls weft. That is for ever if that
// goroutine in turn waits for this one in a loop without a call into weft. A goroutine that calls weft::blocking or
// lock_os_thread moves to another thread before it does so, unless it is pinned to this thread, too. Holding a
// std::mutex across a suspension is wrong even with a pin: other goroutines on the thread may want it.
class [[nodiscard]] pin {
 public:
  WEFT_API pin();
  WEFT_API ~pin();
  pin(const pin&) = delete;
  pin& operator=(const pin&) = delete;
};

// As long as a no_preemption lives, the calling goroutine keeps its right to run (its P): it does not lose that right
// by computing or blocking for long, and a call into weft suspends it only if it has to wait. That also holds when
// run() ends, until shutdown_grace is over. With procs() == 1, no other goroutine runs until it ends. They nest.
// Goroutine only. A no_preemption must end in the goroutine that began it; anything else is fatal.
//
// With procs() == 1, everything else waits meanwhile, timers and sockets included. With any number of Ps, a call that
// stops the world (set_procs, dump_goroutines) waits, and all other goroutines wait with it. Weft itself, when the
// number of processors changes or for WEFT_DEBUG=scheddetail, gives up after 10 ms and tries again later. So a
// goroutine must not loop without end or block in this state. While it is suspended, and in weft::blocking, others run;
// when it goes on, it has that right again.
class [[nodiscard]] no_preemption {
 public:
  WEFT_API no_preemption();
  WEFT_API ~no_preemption();
  no_preemption(const no_preemption&) = delete;
  no_preemption& operator=(const no_preemption&) = delete;
};

// Ends the calling goroutine and runs the destructors of its frames. It does so by an exception that only `catch (...)`
// sees, which must rethrow it. If main calls it, the other goroutines go on. Goroutine only.
[[noreturn]] WEFT_API void exit_goroutine();

// Counters since the process started, and gauges of this moment. Each number is right, but they are not all of the same
// instant.
struct stats {
  // goroutines, by state
  std::uint64_t goroutines = 0;  // alive
  std::uint64_t runnable = 0;    // in run queues
  std::uint64_t running = 0;     // executing, or in a blocking call; and Ps whose threads look for work
  std::uint64_t waiting = 0;     // parked: alive, less runnable and running, so too few while threads look for work
  // threads
  std::uint64_t threads = 0;       // the runtime's, without sysmon
  std::uint64_t idle_threads = 0;  // asleep without work
  std::uint64_t spinning_threads = 0;
  std::uint64_t procs = 0;
  std::uint64_t idle_procs = 0;
  std::uint64_t global_queue = 0;  // runnable goroutines in the global queue, and `newcomers`
  // since the start of the process
  std::uint64_t spawned = 0;      // goroutines started
  std::uint64_t dispatches = 0;   // goroutines given a P
  std::uint64_t yields = 0;       // calls of yield()
  std::uint64_t parks = 0;        // times a goroutine parked
  std::uint64_t steals = 0;       // times a P took goroutines from another P
  std::uint64_t polls = 0;        // looks at the poller, blocking or not
  std::uint64_t preemptions = 0;  // goroutines asked to yield because they ran for long
  std::uint64_t retakes = 0;      // Ps taken from threads in system calls or long computations
  std::uint64_t timers = 0;       // gauge: timers in the heaps, including stopped ones that are not cleaned out yet;
                                  // timers with a channel only once somebody waits for it
  std::uint64_t stacks = 0;       // gauge: stacks made and kept for reuse
  // more of the goroutines, gauges
  std::uint64_t in_calls = 0;       // of those running: in blocking()
  std::uint64_t detached = 0;       // of those running: neither called weft nor announced that they block, and lost
                                    // their P; they go on, on threads of their own
  std::uint64_t hogs = 0;           // of those detached: were computing when they lost it
  std::uint64_t newcomers = 0;      // of those runnable: wait to begin until fewer others are detached
  std::uint64_t local_queues = 0;   // of those runnable: in the queues of Ps
  std::uint64_t longest_queue = 0;  // of these: in the longest queue
  // more of the threads, gauge
  std::uint64_t locked_threads = 0;  // wait for the goroutine that is tied to them (lock_os_thread)
  // more since the start of the process
  std::uint64_t wakeups = 0;            // parked goroutines made runnable
  std::uint64_t thread_wakeups = 0;     // threads woken or started to run goroutines
  std::uint64_t spins = 0;              // times a thread looked for work at all other Ps
  std::uint64_t preemptions_taken = 0;  // of `preemptions`: gave way at a call into weft, or lost their P
  std::uint64_t detachments = 0;        // of these: lost their P; of `retakes`: those not in blocking()
  // parks, by what was waited for: wait_reason_name(i)
  std::array<std::uint64_t, 32> parks_by_reason{};
  // How long goroutines that were started or woken were runnable before they ran: latency[i] of them for at least 2^i
  // ns and less than 2^(i + 1) ns. It is a sample of one in 64.
  std::array<std::uint64_t, 32> latency{};
};

// Returns what parks_by_reason[i] counts, as dumps show it ("chan receive"); an empty string if it counts nothing.
// Anywhere.
WEFT_API std::string_view wait_reason_name(std::size_t i) noexcept;

// Returns the counters and gauges. Anywhere.
WEFT_API stats runtime_stats() noexcept;

// How much of their stacks goroutines used. One entry is about the goroutines that were started at one place, with one
// stack size.
struct stack_use {
  const void* started_at = nullptr;  // an address in the function that started them; null: many places together
  std::size_t stack_size = 0;        // bytes that each one had
  std::uint64_t goroutines = 0;      // how many: those that ended and, in a run(), those that live
  std::size_t deepest = 0;           // the most bytes that any one of them used
};

namespace detail {
WEFT_API void for_each_stack_use(void (*f)(void* arg, const stack_use&), void* arg);
}

// Returns one entry for each place and stack size, the deepest first. Counted are the goroutines that ended while
// options::measure_stacks was set, in any run(), and the goroutines that live now. Of a living goroutine it is what the
// goroutine has used so far, in whole pages if it is running. Anywhere. WEFT_DEBUG=stacks=1 in the environment prints
// the list, with names, at the end of run(). Throws std::bad_alloc.
inline std::vector<stack_use> stack_high_water() {
  std::vector<stack_use> uses;
  detail::for_each_stack_use([](void* to, const stack_use& u) { static_cast<decltype(uses)*>(to)->push_back(u); },
                             &uses);
  return uses;
}

// From now on, calls f at each forced tick (options::force_tick_period), in a goroutine of the runtime, after the
// runtime's own housekeeping: a place to trim caches. f must not wait for long, nor call exit_goroutine(). An exception
// that leaves f ends the process, as with go(). This holds for all later runs, too: f, and what it captured, stay until
// the process ends. Anywhere, also while no runtime is running. Throws std::invalid_argument if f is empty, and
// std::bad_alloc.
WEFT_API void on_forced_tick(std::function<void()> f);

// Writes every goroutine to `out`: id, name, state, what it waits for and for how long, stack trace, and where it was
// started. One that runs on another thread has no trace; of one in blocking() it begins at that call. Goroutines that
// are equal but for id and name are shown once. Does nothing while no runtime is running. The world is stopped while
// the stacks are read, and goes on before anything is written. Errors of writing are not reported. Anywhere.
WEFT_API void dump_goroutines(std::FILE* out);

}  // namespace weft
