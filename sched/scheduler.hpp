// What all Ms share. The comment beside a field of `sched` says who may touch it, as in p.hpp; "sched" or "mutex":
// under sched.mutex.
#pragma once

#include "runtime/alarm_clock.hpp"
#include "runtime/lock.hpp"
#include "runtime/never_destroyed.hpp"
#include "sched/m.hpp"
#include "sched/p.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <sys/types.h>

namespace weft::rt {

inline constexpr std::uint32_t max_procs = 1024;

// A set of P numbers that any thread may read. seq_cst: S3 skips the Ps in idle_mask, and those that are not in
// timer_mask ("append-check-wake", proc.cpp).
class p_mask {
 public:
  bool has(std::uint32_t id) const noexcept { return words_[id / 64].load(seq_cst) >> (id % 64) & 1; }
  void set(std::uint32_t id) noexcept { words_[id / 64].fetch_or(std::uint64_t{1} << (id % 64), seq_cst); }
  void clear(std::uint32_t id) noexcept { words_[id / 64].fetch_and(~(std::uint64_t{1} << (id % 64)), seq_cst); }

 private:
  std::array<atomic<std::uint64_t>, max_procs / 64> words_{};
};

// rests: sysmon was hurried a moment ago. wanted: a thread would have hurried it while it rested.
enum class sysmon_state : std::uint8_t { looks, rests, wanted, may_be_hurried };

struct scheduler_options {
  std::uint32_t procs = 1;
  std::size_t stack_size = default_stack_size;
  guard_kind guards = guard_kind::madvise;  // WEFT_DEBUG=guards: the best kind to be used
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
  sigset_t signal_mask{};  // every M's, whichever thread starts it: the mask of run()'s caller, without SIGSEGV

  // Read when an M goes by its scheduler's loop, and by some calls; written seldom. The fast way from goroutine to
  // goroutine (next_local, park.cpp) reads none of it, except for default_stacks when one ends.
  alignas(cache_line) atomic<bool> world_stopping{false};
  atomic<bool> shutting_down{false};
  atomic<bool> running{false};
  atomic<main_state> main{main_state::not_begun};  // written by main and at a run()'s start
  atomic<std::uint32_t> procs{0};
  atomic<bool> newcomers_wait{false};       // goroutines that have not begun need the turn to begin (newcomers.cpp)
  atomic<bool> turn_is_free{true};          // any P may take it; written under mutex
  atomic<bool> suspects_wait{false};        // written under mutex
  atomic<std::uint32_t> newcomers_size{0};  // how many newcomers were put aside; with `unsorted`
  atomic<std::uint32_t> suspects_size{0};   // how many suspects were put aside; without `unsorted`
  atomic<P*> alone_p{nullptr};              // the P that is alone, or was (`unaware`); written under mutex
  atomic<bool> somebody_unaware{false};     // written under mutex
  std::array<atomic<P*>, max_procs> all_ps{};
  atomic<stack_class*> default_stacks{nullptr};

  // Room for goroutines (spawn.cpp). A plain thread's go() may ask for it while run() begins.
  lock room{lock_rank::room};
  // room:
  atomic<std::size_t> goroutine_room{0};                   // how many Gs may be in use; read by all
  std::size_t left_behind_gs = 0, left_behind_stacks = 0;  // by earlier runs
  std::size_t stack_cache = 1;                             // free stacks that a P keeps; read by Ms

  // Read when work is made ready.
  alignas(cache_line) atomic<std::uint32_t> idle_ps{0};
  atomic<std::uint32_t> spinning{0};
  atomic<std::uint32_t> global_size{0};
  atomic<M*> dozer{nullptr};  // the thread that swaps it for null wakes that M (doze.cpp)
  // If this is the dozer: it wants to see what one P does alone, or has seen that this is enough (find.cpp: leaves).
  atomic<const M*> all_leave_to{nullptr};
  atomic<std::uint64_t> next_trial_of_all{0};  // in cpu_ticks; written by any M (help_trial.cpp)
  atomic<bool> help_wanted{false};             // wakep was called for work since the dozer fell asleep
  atomic<bool> out_of_threads{false};          // a P idles because no thread was to be had for it; written under mutex
  atomic<bool> m_wanted{false};     // sysmon is to start an M, as the thread that wanted one may not; set under mutex
  atomic<nanos> thread_refused{0};  // when the system last refused a thread, or 0 if it has given one since

  alignas(cache_line) atomic<nanos> last_poll{0};  // when an M last looked into the poller; 0: one blocks there
  atomic<bool> somebody_looks{false};              // an M without work looks into the poller without blocking
  // The last look of that kind that found something: when it was, and whose.
  atomic<nanos> spare_look{0};
  atomic<const M*> spare_looker{nullptr};
  atomic<nanos> poll_until{0};                    // until when the M in the poller blocks; 0: for ever
  atomic<std::uint32_t> poll_waiters{0};          // goroutines that wait for descriptors
  atomic<std::uint32_t> foreign_poll_waiters{0};  // foreign threads that wait for descriptors
  atomic<nanos> coarse_now{0};

  // The M that came back from the poller last and still has something to run, and its promise (burst.cpp).
  atomic<M*> burst_of{nullptr};
  atomic<P*> burst_p{nullptr};
  atomic<std::uint64_t> burst_dispatches{0};  // dispatches(burst_p) when the burst began
  atomic<nanos> burst_began{0};
  atomic<std::uint32_t> short_bursts{0};  // how many of the last bursts in a row were short
  // How many of them are enough for a promise.
  atomic<std::uint32_t> short_bursts_before{short_bursts_at_first};
  atomic<M*> promiser{nullptr};  // counted as spinning; the thread that swaps it for null takes that count over
  atomic<nanos> promise_due{0};  // until when the promise holds

  alignas(cache_line) lock mutex{lock_rank::sched};
  // sched:
  g_queue global;
  g_queue newcomers, suspects;              // put aside
  std::size_t unsorted = 0;                 // so many suspects, the first, were queued before an acquittal
  std::array<const void*, 16> hog_kinds{};  // G::spawn_pc of goroutines that computed for long
  std::size_t next_hog_kind = 0;            // the index of the oldest of them, modulo 16
  const void* kind_on_trial = nullptr;      // the kind of a goroutine that sysmon watches
  bool all_newcomers_wait = false;          // not only suspects
  bool suspects_at_once = true;             // none that began without the turn has lost its P lately
  P* idle_p_list = nullptr;
  // The size of the global queue when an M last gave its P up; written under mutex. The dozer reads it.
  atomic<std::uint32_t> left_in_global{0};
  atomic<std::uint64_t> ps_taken{0};  // how many Ps were taken from that list; written under mutex
  // If somebody_unaware: the M that held p when another P was taken, and that may still think it is alone (alone.cpp).
  struct {
    const P* p = nullptr;
    const M* m = nullptr;
    std::uint64_t dispatches = 0;
  } unaware;
  M* idle_m_list = nullptr;
  std::uint32_t idle_ms = 0;
  std::uint32_t idle_locked_ms = 0;  // Ms that sleep until their locked goroutine is ready
  std::uint32_t live_ms = 0;         // threads that have not left the scheduler's loop
  std::uint32_t tied_ms = 0;         // of live_ms: a goroutine is locked to them, or about to be
  std::uint32_t untied_ms = 0;       // of live_ms: the rest, without those that are starting or leaving
  bool spare_starts = false;         // a thread is being started that will be one of untied_ms
  g_list tie_waiters;                // goroutines that wait for tied_ms to fall (locked.cpp)
  // While out of threads: since when no M has come by, and all_dispatches() then (thread_limit.cpp).
  struct {
    nanos since = 0;
    std::uint64_t dispatches = 0;
  } nobody_came_by;
  atomic<M*> gone_ms{nullptr};               // Ms that left the scheduler's loop while the run() goes on, to be joined
  linked_list<M, &M::in_detached> detached;  // Ms that run a goroutine without a P
  atomic<std::uint32_t> detached_ms{0};      // how many Ms are in that list; written under mutex
  atomic<std::uint32_t> hogs{0};             // how many of these Ms compute; written under mutex
  std::uint64_t next_m_id = 1;
  linked_list<M, &M::in_all> all_ms;
  note stop_note;
  note exit_note;

  atomic<bool> follow_cpus{false};  // sysmon adapts the number of Ps

  p_mask idle_mask;
  p_mask timer_mask;

  lock world{lock_rank::stop_the_world};
  atomic<std::uint64_t> next_g_id{1};

  // Sources outside the scheduler's sight that may wake a goroutine (signal channels).
  atomic<std::uint32_t> external_sources{0};

  // sysmon: it pauses between two looks, and sleeps deeply while every P idles.
  atomic<sysmon_state> sysmon{sysmon_state::looks};
  alarm_clock sysmon_pause;
  atomic<nanos> sysmon_polls{0};        // until when an alarm is set for that (have_sysmon_poll)
  atomic<nanos> watch_poller_until{0};  // until when such alarms are set
  bool sysmon_waits = false;            // sched
  bool suspect_dead = false;            // sched: all Ms sleep, and only a thread that weft did not start could wake one
  note sysmon_note;

  // The forced tick.
  atomic<nanos> last_forced_tick{0};
  atomic<void (*)()> tick_hook{nullptr};  // calls what users registered
  G* housekeeper = nullptr;               // sched: parked, waiting for the tick

  atomic<std::uint64_t> foreign_spawned{0};  // goroutines started by threads without a P

  // The run()s.
  atomic<std::uint64_t> run_number{0};
  atomic<std::uint64_t> ended_before{0};  // goroutines that earlier runs left behind
  atomic<std::uint32_t> left_behind{0};   // threads of earlier runs that never came back
  pid_t process = 0;                      // the process in which these threads are

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
};

extern never_destroyed<scheduler> the_scheduler;
inline constexpr scheduler& sched = the_scheduler.value;

inline bool anybody_waits_for_io() noexcept {
  return sched.poll_waiters.load(seq_cst) + sched.foreign_poll_waiters.load(seq_cst) != 0;
}

}  // namespace weft::rt
