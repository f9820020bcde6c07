// Running: the runtime's start and end, and what concerns it as a whole.
//
// In these headers *anywhere* means: from a goroutine, or from any other thread of the process (which then blocks as a
// thread); *goroutine only*: elsewhere it throws std::logic_error.
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

// Durations of any unit; one that does not fit into nanoseconds is for ever.
struct options {
  // How many goroutines execute at once. 0: the environment's WEFT_PROCS, else the processors this process may use
  // (affinity and the cgroup's CPU quota), looked at again once a second until somebody calls set_procs.
  unsigned procs = 0;
  // Bytes of address space for each goroutine's stack: at least 16 KiB, and rounded up to an even number of pages.
  // Memory is used only as it is touched.
  std::size_t stack_size = 256 * 1024;
  // Threads the runtime starts at most. With all of them blocked the goroutines wait; that is said once, on stderr.
  // So many goroutines may be tied to threads at once (lock_os_thread); then one more thread serves the others.
  unsigned max_threads = 10000;
  // How often the runtime does its housekeeping: gives the memory of free stacks back, for example. Less than 1 ms
  // counts as 1 ms.
  detail::any_duration force_tick_period = std::chrono::minutes(2);
  // Report "all goroutines are asleep" and exit with code 2. A timer whose channel nobody waits for wakes nobody.
  bool deadlock_check = true;
  // SIGQUIT prints every goroutine and exits with code 2, unless an io::signal_channel has it. False: its disposition
  // is untouched.
  bool sigquit_dump = true;
  // When main has returned: how long run() waits for goroutines that compute or block.
  detail::any_duration shutdown_grace = std::chrono::seconds(1);
  // Keep record of how much of their stacks goroutines use: stack_high_water(). Each then ends some microseconds later.
  bool measure_stacks = false;
};

namespace detail {
WEFT_API void run_main(const options& o, void (*main)(void*), void* arg);
WEFT_API void enter_blocking() noexcept;
WEFT_API void leave_blocking() noexcept;

struct blocking_scope {
  blocking_scope() noexcept { enter_blocking(); }
  ~blocking_scope() { leave_blocking(); }
  blocking_scope(const blocking_scope&) = delete;
  blocking_scope& operator=(const blocking_scope&) = delete;
};
}  // namespace detail

// Starts the runtime, runs main as a goroutine and returns when it returns, with its int (void: 0). An exception that
// leaves main comes out here. Nobody waits for the remaining goroutines, and what their stacks own is leaked. They stop
// where they wait, or at their next call into weft. For one that computes or blocks, run() waits shutdown_grace; if it
// has not come by then, it goes on, on its own thread, until that call: what it refers to has to outlive run(). The
// calls of weft/sync.hpp that find nothing to wait for may pass, and what only tells something, as size() and id() do.
// run() may be called again afterwards, and starts afresh. If main ends by exit_goroutine, run() does not return: the
// others go on, and when none of them can, that is a deadlock. From the first run() on SIGSEGV has a handler of weft's,
// which passes on what is no stack overflow. Not from a goroutine, and one at a time:
// std::logic_error. procs above 1024, max_threads 0, a negative duration: std::invalid_argument. No memory:
// std::bad_alloc. Errors of the system: std::system_error.
template <class F>
int run(F main, const options& o = {}) {
  static_assert(std::is_invocable_v<F>, "weft::run(main): main takes no arguments");
  using R = std::invoke_result_t<F>;
  static_assert(std::is_void_v<R> || std::is_convertible_v<R, int>, "weft::run(main): main returns int or void");
  struct state {
    F& main;
    int code = 0;
  } s{main};
  detail::run_main(
      o,
      [](void* arg) {
        auto& st = *static_cast<state*>(arg);
        if constexpr (std::is_void_v<R>) {
          std::invoke(std::move(st.main));
        } else {
          st.code = std::invoke(std::move(st.main));
        }
      },
      &s);
  return s.code;
}

// How many goroutines execute at once. Anywhere; 0 while no runtime is running.
WEFT_API unsigned procs() noexcept;

// Changes it and returns the old value. Run queues and timers move along. Anywhere while a runtime is running
// (std::logic_error else); 0 or more than 1024: std::invalid_argument.
WEFT_API unsigned set_procs(unsigned n);

// Goroutines alive now, main included, and those that some calls start for their time (a lookup by name, a connection
// with a context); 0 while no runtime is running. Anywhere.
WEFT_API std::size_t num_goroutines() noexcept;

// Everything runnable now gets its turn before this goroutine goes on; what another thread of the runtime has taken
// over from this one, it may begin a moment later. Anywhere: another thread yields as a thread.
WEFT_API void yield() noexcept;

// Runs f, which may block its thread (a system call, a library); other goroutines run meanwhile on another thread. Each
// such call has a thread until f returns; only options::max_threads limits them. Returns what f returns, or throws what
// it throws. Anywhere. A call into weft from f that enters the runtime, as most do, ends this: what blocks
// after it is unannounced.
template <class F>
std::invoke_result_t<F> blocking(F&& f) {
  detail::blocking_scope scope;
  return std::invoke(std::forward<F>(f));
}

// Ties the calling goroutine to the thread it runs on: no other goroutine runs there, and it runs nowhere else. They
// nest. A goroutine that ends tied is untied. Goroutine only. Unlocking what is not locked is fatal. With
// options::max_threads goroutines tied it waits until one is not any more. std::system_error, and nothing is tied: the
// other goroutines would be left without a thread.
WEFT_API void lock_os_thread();
WEFT_API void unlock_os_thread();

// As long as it lives, the calling goroutine runs on no other thread than it does now; but unlike lock_os_thread,
// others run there, too, while it is suspended. For what is bound to a thread, as thread_local variables are, across
// suspensions, at a fraction of the price of lock_os_thread. They nest. Goroutine only; ends in the goroutine that
// began it (else fatal).
//
// Ready, it goes on as soon as its thread is free. So it waits for a goroutine that computes there, or blocks without
// weft::blocking, until that next calls weft: if that one waits for this goroutine in turn, in a loop without a call
// into weft, for ever. One that calls weft::blocking or lock_os_thread moves to another thread before it does, unless
// it is pinned to that one, too. A std::mutex held across a suspension is wrong all the same: others on the thread may
// want it.
class [[nodiscard]] pin {
 public:
  WEFT_API pin();
  WEFT_API ~pin();
  pin(const pin&) = delete;
  pin& operator=(const pin&) = delete;
};

// As long as it lives, the calling goroutine keeps its right to run: nobody takes its P because it computes or blocks
// for long, and a call into weft suspends it only if it has to wait. With procs() 1, nobody else runs until then. They
// nest. Goroutine only; ends in the goroutine that began it (else fatal).
//
// What waits meanwhile: everything with procs() 1, timers and sockets included; and at any number of Ps whatever stops
// the world, all other goroutines with it: set_procs, dump_goroutines. Weft itself, when the number of processors
// changes or for WEFT_DEBUG=scheddetail, gives up after 10 ms and tries again later. So: no loops without end, nothing
// that blocks. Others run while it is suspended, and in weft::blocking; afterwards it is as it was.
class [[nodiscard]] no_preemption {
 public:
  WEFT_API no_preemption();
  WEFT_API ~no_preemption();
  no_preemption(const no_preemption&) = delete;
  no_preemption& operator=(const no_preemption&) = delete;
};

// Ends the calling goroutine, running the destructors of its frames (by an exception that only `catch (...)` sees,
// which must rethrow it). In main, the others go on. Goroutine only.
[[noreturn]] WEFT_API void exit_goroutine();

// Counters since the process started, and gauges of this moment. The numbers are each right but not of one instant.
struct stats {
  // goroutines, by state
  std::uint64_t goroutines = 0;  // alive
  std::uint64_t runnable = 0;    // in run queues
  std::uint64_t running = 0;     // executing, or in a blocking call
  std::uint64_t waiting = 0;     // parked
  // threads
  std::uint64_t threads = 0;       // the runtime's, without sysmon
  std::uint64_t idle_threads = 0;  // asleep without work
  std::uint64_t spinning_threads = 0;
  std::uint64_t procs = 0;
  std::uint64_t idle_procs = 0;
  std::uint64_t global_queue = 0;  // runnable goroutines in the global queue
  // since the start of the process
  std::uint64_t spawned = 0;      // goroutines started
  std::uint64_t dispatches = 0;   // goroutines given a P
  std::uint64_t yields = 0;       // calls of yield()
  std::uint64_t parks = 0;        // times a goroutine parked
  std::uint64_t steals = 0;       // times a P took goroutines from another P
  std::uint64_t polls = 0;        // looks at the poller, blocking or not
  std::uint64_t preemptions = 0;  // goroutines asked to yield because they ran for long
  std::uint64_t retakes = 0;      // Ps taken from threads in system calls or long computations
  std::uint64_t timers = 0;       // gauge: timers in the heaps: those of channels only while waited for; stopped
                                  // ones that are not cleaned out yet included
  std::uint64_t stacks = 0;       // gauge: stacks made and kept for reuse
  // more of the goroutines, gauges
  std::uint64_t in_calls = 0;      // of those running: in blocking()
  std::uint64_t detached = 0;      // of those running: they neither called weft nor announced that they block, and lost
                                   // their P; they go on, on threads of their own
  std::uint64_t hogs = 0;          // of those detached: computed when they lost it
  std::uint64_t newcomers = 0;     // of those runnable: wait to begin until fewer others are detached
  std::uint64_t local_queues = 0;  // of those runnable: in the queues of Ps
  std::uint64_t longest_queue = 0;  // in the longest of these
  // more of the threads, gauge
  std::uint64_t locked_threads = 0;  // wait for the goroutine that is locked to them
  // more since the start of the process
  std::uint64_t wakeups = 0;            // parked goroutines made runnable
  std::uint64_t thread_wakeups = 0;     // threads woken or started to run goroutines
  std::uint64_t spins = 0;              // times a thread looked for work at all other Ps
  std::uint64_t preemptions_taken = 0;  // of those asked: gave way at a call into weft, or lost their P
  std::uint64_t detachments = 0;        // of those: lost their P; of `retakes`: not in blocking()
  // parks, by what was waited for: wait_reason_name(i)
  std::array<std::uint64_t, 32> parks_by_reason{};
  // How long goroutines that were started or woken were runnable before they ran: latency[i] of them at least 2^i ns,
  // and less than 2^(i + 1). A sample: one in 64.
  std::array<std::uint64_t, 32> latency{};
};

// What parks_by_reason[i] counts, as in dumps: "chan receive"; empty if nothing. Anywhere.
WEFT_API std::string_view wait_reason_name(std::size_t i) noexcept;

// Anywhere.
WEFT_API stats runtime_stats() noexcept;

// How much of their stacks the goroutines used that were started at one place.
struct stack_use {
  const void* started_at = nullptr;  // an address in the function that started them; null: many places together
  std::size_t stack_size = 0;        // bytes that each had
  std::uint64_t goroutines = 0;      // how many: those that ended, and in a run() those that live
  std::size_t deepest = 0;           // bytes that one of them used at most
};

// One for each place and size, the deepest first: those that ended while options::measure_stacks was set, in any run(),
// and now living ones (what these used so far; if they run just now, in whole pages). Anywhere. WEFT_DEBUG=stacks=1 in
// the environment prints the list with names at the end of run(). std::bad_alloc.
WEFT_API std::vector<stack_use> stack_high_water();

// Calls f at each forced tick from now on (options::force_tick_period), in a goroutine of the runtime, after its own
// housekeeping: a place to trim caches. f must not wait for long; an exception that leaves it ends the process, as with
// go(). Anywhere, also while no runtime is running; holds for all later runs. f stays until the process ends, and so
// does what it captured. std::invalid_argument: f is empty. std::bad_alloc.
WEFT_API void on_forced_tick(std::function<void()> f);

// Every goroutine: id, name, state, what it waits for and how long, stack trace, where it was started. Those that are
// equal but for id and name are shown once. Anywhere; with no runtime running it does nothing. The world is stopped
// while the stacks are read, and goes on before anything is written. It does not report errors of writing.
WEFT_API void dump_goroutines(std::FILE* out);

}  // namespace weft
