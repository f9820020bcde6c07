// P, M and the scheduler's shared state.
//
//   G (runtime/g.hpp)  a goroutine
//   M                  an OS thread; its own stack ("g0") runs the scheduler's loop
//   P                  the right to run goroutines: there are procs() of them, and an M runs Gs only while it holds one
//
// Who may touch a field is said beside it. "owner": the M that holds the P, or whoever took the P out of a list
// and has not passed it on. "sched": under scheduler::mutex.
#pragma once

#include "runtime/context.hpp"
#include "runtime/g_queue.hpp"
#include "runtime/linked_list.hpp"
#include "runtime/lock.hpp"
#include "runtime/never_destroyed.hpp"
#include "runtime/note.hpp"
#include "runtime/overflow.hpp"
#include "runtime/random.hpp"
#include "runtime/stack.hpp"
#include "sched/runq.hpp"
#include "timers/timer_heap.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <new>
#include <pthread.h>

namespace weft::rt {

struct M;
struct P;

// A counter with one writer: the owner of the P. Others read it at any time.
class owned_counter {
 public:
  // Returns the new value.
  std::uint64_t add(std::uint64_t n = 1) noexcept {
    std::uint64_t value = value_.load(relaxed) + n;
    value_.store(value, relaxed);
    return value;
  }
  std::uint64_t get() const noexcept { return value_.load(relaxed); }

  // Who reads the new value sees what was counted before, here and by others of whom the owner has seen it.
  void add_release() noexcept { value_.store(value_.load(relaxed) + 1, release); }
  std::uint64_t get_acquire() const noexcept { return value_.load(acquire); }

 private:
  atomic<std::uint64_t> value_{0};
};

//   status    the P is                                who may change that
//   idle      on the idle list, or being passed on    sched (idle list), whoever passes it on
//   running   held by an M                            that M; sysmon and stop-the-world by detaching (preempt.cpp)
//   syscall   left behind by an M in a system call    whoever wins the CAS: the M that returns, sysmon, stop-the-world
//   stopped   stopped with the world                  who stopped the world
//   dead      beyond procs()                          set_procs
enum class p_status : std::uint8_t { idle, running, syscall, stopped, dead };

// Memory that nobody uses (blocks.hpp).
struct free_block {
  free_block* next;
};
class free_block_list {
 public:
  std::size_t size() const noexcept { return size_; }
  void push(void* block) noexcept {
    first_ = ::new (block) free_block{first_};
    if (++size_ == 1) last_ = first_;
  }
  free_block* pop() noexcept {
    free_block* b = first_;
    if (!b) return nullptr;
    first_ = b->next;
    --size_;
    return b;
  }
  void take_all(free_block_list& other) noexcept {
    if (other.size_ == 0) return;
    other.last_->next = first_;
    if (size_ == 0) last_ = other.last_;
    first_ = other.first_;
    size_ += other.size_;
    other = {};
  }

 private:
  free_block *first_ = nullptr, *last_ = nullptr;
  std::size_t size_ = 0;
};

inline constexpr std::size_t p_cache = 64;  // free Gs that a P keeps, and at most as many stacks

struct alignas(cache_line) P {
  explicit P(std::uint32_t number) noexcept : id(number) {}

  const std::uint32_t id;
  atomic<p_status> status{p_status::dead};
  atomic<M*> m{nullptr};                  // owner; read by sysmon
  P* next_idle = nullptr;                 // sched
  atomic<std::uint64_t> sched_tick{0};    // owner: one more for each new time slice
  atomic<std::uint32_t> syscall_tick{0};  // owner: one more for each system call

  run_queue runq;

  // When, in cpu_ticks, the dispatcher must look at timers and the poller; 0: nothing to look for. Planned by the
  // owner; others who want it to look (a foreign thread that arms a timer here, sysmon) store 1 ("now"). If the owner
  // overwrites that, sysmon sees to it.
  atomic<std::uint64_t> next_look{0};
  bool newcomer_first = false;  // owner: whose turn it is, a newcomer's or the global queue's
  // owner: when one that was woken last ran before all who waited: dispatches(p), and in which time slice (sched_tick)
  std::uint64_t passed_at = 0;
  std::uint64_t pass_slice = 0;

  // The turn for newcomers is here (newcomers.cpp): the goroutine that runs began on it and is not known yet.
  // Written by the owner, or under sched::mutex by whoever takes the P.
  atomic<bool> has_turn{false};
  const void* turn_kind = nullptr;  // sched: G::spawn_pc of that goroutine

  timer_heap timers;

  // Owner: dead goroutines, and stacks of the default class, ready for reuse.
  small_stack<G, p_cache> free_gs;
  small_stack<stack, p_cache> free_stacks;
  free_block_list free_blocks;
  std::uint64_t id_next = 0, id_end = 0;

  struct {
    owned_counter spawned, ended, inherited, yields, wakeups, steals, spins, polls;
    std::array<owned_counter, wait_reasons> parks;
    std::array<owned_counter, 32> latency;  // [i]: from 2^i ns on (latency.hpp)
  } count;

  // sysmon's own notes about this P.
  struct {
    std::uint64_t sched_tick = 0;
    std::uint32_t syscall_tick = 0;
    nanos sched_when = 0, syscall_when = 0;
  } seen;
};

// What others ask of an M; it looks at these bits when it enters the runtime, and between goroutines.
namespace request {
inline constexpr std::uint32_t yield = 1;       // its goroutine ran for long: let others run
inline constexpr std::uint32_t revoked = 2;     // its P is being taken or was taken (preempt.cpp)
inline constexpr std::uint32_t stop = 4;        // the world stops
inline constexpr std::uint32_t in_syscall = 8;  // set by itself: it left its P behind
inline constexpr std::uint32_t abandoned = 16;  // run() is over: never run again
inline constexpr std::uint32_t hazard = 32;     // for good: WEFT_DEBUG=hazard (hazard.cpp)
inline constexpr std::uint32_t pinned = 64;     // goroutines pinned to it are ready (pin.cpp)
}  // namespace request

struct alignas(cache_line) M : thread_state {
  // In the runtime: > 0 while the M executes runtime code, and then nobody takes its P. Written by this M only.
  atomic<std::uint32_t> depth{1};
  atomic<std::uint32_t> requests{0};

  atomic<P*> p{nullptr};         // this M; whoever detaches its P
  P* next_p = nullptr;           // whoever wakes this M passes it a P
  P* syscall_p = nullptr;        // this M: the P it left behind
  atomic<bool> spinning{false};  // this M

  G* picked = nullptr;           // to run next: the fast path took it and may not run it, or it was passed on
  atomic<G*> locked_g{nullptr};  // this M: lock_os_thread

  std::uint32_t pins = 0;         // this M, and sched while it idles: goroutines that are pinned to it
  atomic<bool> in_poller{false};  // this M; kept only while pins != 0
  g_list pinned_ready;            // sched: those of them that others took from a queue

  note parked;             // where it sleeps
  M* next_idle = nullptr;  // sched; after its end: the next one to be joined
  M* prev_idle = nullptr;  // sched
  bool in_idle_list = false;
  list_links<M> in_all;       // sched
  list_links<M> in_detached;  // sched
  bool is_hog = false;        // sched: counted in sched.hogs
  bool leaves = false;        // this M: it idled for long, and its thread ends
  bool begins_idle = false;   // set before its thread starts

  random_source random;
  G g0;
  stack thread_stack;  // g0's
  signal_stack for_signals;
  std::uint32_t id = 0;
  pthread_t thread{};
  int tid = 0;                 // the kernel's number
  std::uint32_t regained = 0;  // sched: how often it came back after its P was taken
  atomic<bool> finished{false};
};

inline constexpr std::uint32_t max_procs = 1024;

// A set of P numbers that anybody may read.
class p_mask {
 public:
  bool has(std::uint32_t id) const noexcept { return words_[id / 64].load(seq_cst) >> (id % 64) & 1; }
  void set(std::uint32_t id) noexcept { words_[id / 64].fetch_or(std::uint64_t{1} << (id % 64), seq_cst); }
  void clear(std::uint32_t id) noexcept { words_[id / 64].fetch_and(~(std::uint64_t{1} << (id % 64)), seq_cst); }

 private:
  std::array<atomic<std::uint64_t>, max_procs / 64> words_{};
};

struct scheduler_options {
  std::uint32_t procs = 1;
  std::size_t stack_size = default_stack_size;
  guard_kind guards = guard_kind::madvise;  // WEFT_DEBUG=guards: the best to be used
  bool measure_stacks = false;
  bool print_stacks = false;  // WEFT_DEBUG=stacks
  std::uint32_t max_threads = 10000;
  nanos force_tick_period = 120 * second;
  nanos shutdown_grace = second;
  bool deadlock_check = true;
  nanos trace_period = 0;     // WEFT_DEBUG=schedtrace
  bool trace_detail = false;  // WEFT_DEBUG=scheddetail
  nanos hog_threshold = 0;    // WEFT_DEBUG=hogs; 0: off
  bool hazard = false;        // WEFT_DEBUG=hazard
  bool follow_cpus = false;   // the number of Ps is that of the CPUs, until set_procs is called
};

enum class main_state : std::uint8_t { not_begun, runs, ended };

struct scheduler {
  scheduler_options options;
  sigset_t signal_mask{};  // every M's, whichever thread starts it: that of run()'s caller, without SIGSEGV

  // Read by every dispatch, written seldom.
  alignas(cache_line) atomic<bool> world_stopping{false};
  atomic<bool> shutting_down{false};
  atomic<bool> running{false};
  atomic<main_state> main{main_state::not_begun};  // written by main and at a run()'s start
  atomic<std::uint32_t> procs{0};
  atomic<bool> newcomers_wait{false};       // goroutines that have not begun need the turn for it (newcomers.cpp)
  atomic<bool> turn_is_free{true};          // any P may take it; written under mutex
  atomic<bool> suspects_wait{false};        // written under mutex
  atomic<std::uint32_t> newcomers_size{0};  // of those put aside; with the unsorted ones
  atomic<std::uint32_t> suspects_size{0};   // the others
  std::array<atomic<P*>, max_procs> all_ps{};
  atomic<stack_class*> default_stacks{nullptr};

  // Room for goroutines (spawn.cpp). A plain thread's go() may ask for it while run() begins.
  lock room{lock_rank::room};
  // room:
  atomic<std::size_t> goroutine_room{0};                   // as many Gs may be in use; read by all
  std::size_t left_behind_gs = 0, left_behind_stacks = 0;  // by earlier runs
  std::size_t stack_cache = 1;                             // free stacks that a P keeps; read by Ms

  // Read when work is made ready.
  alignas(cache_line) atomic<std::uint32_t> idle_ps{0};
  atomic<std::uint32_t> spinning{0};
  atomic<std::uint32_t> global_size{0};
  atomic<M*> dozer{nullptr};         // whoever swaps it for null wakes it (find.cpp)
  atomic<bool> help_wanted{false};   // somebody called wakep since the dozer fell asleep
  atomic<bool> threads_lack{false};  // a P idles as no thread could be had for it; written under mutex
  atomic<nanos> thread_refused{0};   // when the system last refused one, or 0 if it has given one since

  alignas(cache_line) atomic<nanos> last_poll{0};  // 0: somebody blocks in the poller
  atomic<nanos> poll_until{0};                     // until when; 0: for ever
  atomic<std::uint32_t> poll_waiters{0};           // goroutines that wait for descriptors
  atomic<std::uint32_t> foreign_poll_waiters{0};   // threads that do
  atomic<nanos> coarse_now{0};

  alignas(cache_line) lock mutex{lock_rank::sched};
  // sched:
  g_queue global;
  g_queue newcomers, suspects;              // put aside
  std::size_t unsorted = 0;                 // so many of them, the first, were queued before an acquittal
  std::array<const void*, 16> hog_kinds{};  // G::spawn_pc of goroutines that computed for long
  std::size_t next_hog_kind = 0;            // the oldest of them
  P* idle_p_list = nullptr;
  M* idle_m_list = nullptr;
  std::uint32_t idle_ms = 0;
  std::uint32_t idle_locked_ms = 0;          // sleep until their locked goroutine is ready
  std::uint32_t live_ms = 0;                 // threads that have not left the scheduler's loop
  std::uint32_t tied_ms = 0;                 // of those a goroutine is locked to, or is about to be
  std::uint32_t untied_ms = 0;               // the others, without those that start just now or leave
  bool spare_starts = false;                 // one that will be untied
  g_list tie_waiters;                        // for a tied one less (locked.cpp)
  atomic<M*> gone_ms{nullptr};               // have left it while the run() goes on, and are to be joined
  linked_list<M, &M::in_detached> detached;  // run a goroutine without a P
  atomic<std::uint32_t> detached_ms{0};      // as many; written under mutex
  atomic<std::uint32_t> hogs{0};             // those among them that compute; written under mutex
  std::uint64_t next_m_id = 1;
  linked_list<M, &M::in_all> all_ms;
  note stop_note;
  note exit_note;

  atomic<bool> follow_cpus{false};  // sysmon adapts the number of Ps

  p_mask idle_mask;
  p_mask timer_mask;

  lock world{lock_rank::stop_the_world};
  atomic<std::uint64_t> next_g_id{1};

  // Things outside the scheduler's sight that may wake a goroutine (signal channels).
  atomic<std::uint32_t> external_sources{0};

  // sysmon: it pauses between two looks, and sleeps deeply while every P idles.
  atomic<bool> sysmon_pauses{false};  // for long, and may be hurried
  note sysmon_pause;
  bool sysmon_waits = false;  // sched
  bool suspect_dead = false;  // sched: all sleep, and only a thread that weft did not start could wake one
  note sysmon_note;

  // The forced tick.
  atomic<nanos> last_forced_tick{0};
  atomic<void (*)()> tick_hook{nullptr};  // calls what users registered
  G* housekeeper = nullptr;               // sched: parked, waiting for the tick

  atomic<std::uint64_t> foreign_spawned{0};  // goroutines, by threads without a P

  // The run()s.
  atomic<std::uint64_t> run_number{0};
  atomic<std::uint64_t> ended_before{0};  // goroutines that earlier runs left behind
  atomic<std::uint32_t> left_behind{0};   // threads of earlier runs that never came back

  // Counted by sysmon; preemptions_taken also by an M that gives way.
  atomic<std::uint64_t> preemptions{0};
  atomic<std::uint64_t> preemptions_taken{0};
  atomic<std::uint64_t> retakes{0};
  atomic<std::uint64_t> detachments{0};

  // Counted where no P is at hand; thread_wakeups by all.
  atomic<std::uint64_t> foreign_wakeups{0};  // written under mutex
  atomic<std::uint64_t> came_back{0};        // queued again by Ms without a P; written under mutex
  atomic<std::uint64_t> thread_wakeups{0};   // written under mutex
  atomic<std::uint64_t> polls_by_others{0};

  atomic<std::uint64_t> ticks_per_us{1000};  // of cpu_ticks, measured when a run() begins
};

extern never_destroyed<scheduler> the_scheduler;
inline constexpr scheduler& sched = the_scheduler.value;

// A goroutine is about to run on p; inherit: in the time slice of the one before.
inline void count_dispatch(P* p, bool inherit) noexcept {
  if (inherit) {
    p->count.inherited.add();
    return;
  }
  p->sched_tick.store(p->sched_tick.load(relaxed) + 1, relaxed);
}
inline std::uint64_t dispatches(const P* p) noexcept { return p->sched_tick.load(relaxed) + p->count.inherited.get(); }

// A prime, so that no program's rhythm meets it.
inline bool is_turn_of_global_queue(const P* p) noexcept {
  return static_cast<std::uint32_t>(p->sched_tick.load(relaxed)) % global_queue_every == global_queue_every - 1;
}

inline bool anybody_waits_for_io() noexcept {
  return sched.poll_waiters.load(seq_cst) + sched.foreign_poll_waiters.load(seq_cst) != 0;
}

}  // namespace weft::rt
