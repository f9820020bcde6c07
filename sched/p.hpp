// P: the right to run goroutines. There are procs() of them, and an M runs Gs only while it holds one. A P has all that
// running them needs without a lock: a run queue, a timer heap, free Gs, stacks and blocks, counters.
//
// The comment beside a field says who may touch it. "owner": the M that holds the P, or the thread that took the P out
// of a list and has not passed it on. "sched": under sched.mutex.
#pragma once

#include "runtime/g_queue.hpp"
#include "runtime/wait_reason.hpp"
#include "sched/cold_frames.hpp"
#include "sched/runq.hpp"
#include "timers/sleep_crowd.hpp"
#include "timers/timer_heap.hpp"

#include <array>
#include <cstdint>
#include <new>

namespace weft::rt {

struct M;

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

  // A thread that reads the new value sees what was counted before: here, and by others as far as the owner has seen
  // it.
  void add_release() noexcept { value_.store(value_.load(relaxed) + 1, release); }
  std::uint64_t get_acquire() const noexcept { return value_.load(acquire); }

 private:
  atomic<std::uint64_t> value_{0};
};

//   status    the P is                                who may change that
//   idle      on the idle list, or being passed on    sched (idle list), the thread that passes it on
//   running   held by an M                            that M; sysmon and stop-the-world by detaching (preempt.cpp)
//   syscall   left behind by an M in a system call    the winner of the CAS: the M that returns, sysmon, stop-the-world
//   stopped   stopped with the world                  the thread that stopped the world
//   dead      beyond procs()                          set_procs
enum class p_status : std::uint8_t { idle, running, syscall, stopped, dead };

// What thieves found in a P's ring (steal.cpp): goroutines that are worth a theft (work), or that are not (crumbs).
// crumbs_not_judged: crumbs, and some were taken since.
enum class spoils : std::uint8_t { work, crumbs, crumbs_not_judged };

// A free block of memory (blocks.hpp) has one of these sizes.
inline constexpr std::array<std::size_t, 2> block_sizes{128, 192};
struct free_block {
  free_block* next;
};
class free_block_list {
 public:
  std::size_t size() const noexcept { return size_; }
  void push(void* block) noexcept {
    first_ = ::new (block) free_block{first_};
    ++size_;
  }
  free_block* pop() noexcept {
    free_block* b = first_;
    if (!b) return nullptr;
    first_ = b->next;
    --size_;
    return b;
  }

 private:
  free_block* first_ = nullptr;
  std::size_t size_ = 0;
};

inline constexpr std::size_t p_cache = 64;  // free Gs that a P keeps, and at most as many stacks

struct alignas(cache_line) P {
  explicit P(std::uint32_t number) noexcept : id(number) {}

  const std::uint32_t id;
  atomic<p_status> status{p_status::dead};
  atomic<M*> m{nullptr};                  // owner; read by sysmon
  P* next_idle = nullptr;                 // sched
  atomic<std::uint64_t> sched_tick{0};    // owner: incremented for each new time slice
  atomic<std::uint32_t> syscall_tick{0};  // owner: incremented for each system call
  owned_counter values, collisions;       // at channels (collisions.hpp)

  run_queue runq;
  cold_frames cold;  // owner

  // Written by thieves (steal.cpp), so kept apart from what the owner writes: what the ring holds, and progress(this)
  // at the last theft of crumbs.
  alignas(cache_line) atomic<spoils> spoils_here{spoils::work};
  atomic<std::uint64_t> progress_at_theft{0};
  // Whether its goroutines are short (steal.cpp: is_quick): dispatches(this) at the time `at` (cpu_ticks), and the
  // answer then.
  struct {
    atomic<std::uint64_t> dispatches{0}, at{0};
    atomic<bool> quick{false};
  } pace;

  // The time, in cpu_ticks, at which the dispatcher must look at timers and the poller; 0: there is nothing to look
  // for. The owner plans it. Other threads that want the owner to look (a foreign thread that arms a timer here,
  // sysmon) store 1 ("now"). If the owner overwrites that, sysmon sees to it.
  alignas(cache_line) atomic<std::uint64_t> next_look{0};
  bool missed_turn = false;            // owner: the global queue's turn fell to a timer, and is still to come
  bool newcomer_first = false;         // owner: whose turn comes next, a newcomer's or the global queue's
  atomic<std::uint32_t> batch_end{0};  // owner: the place in the ring behind the last batch from the global queue
  bool yielded_behind_batch = false;   // owner: a goroutine yielded while that batch, and the global queue, had others
  nanos global_waits_since = 0;  // owner: its first look that found the global queue not empty, since it took from it
  // Owner, may_pass (turns.cpp): when a woken goroutine last ran before all that waited. As dispatches(p), or 0 if none
  // has, or a time slice was used up since; as a time; and as the time slice that it got (sched_tick).
  std::uint64_t passed_at = 0;
  nanos passed_when = 0;
  std::uint64_t pass_slice = 0;

  // Owner, let_others_in (park.cpp): the count.inherited at its next look; the ring's head, and cpu_ticks, at its last
  // look; the time slice (sched_tick) after which it let others in, if those that talk have not come back since, or 0;
  // and until when these may go on.
  std::uint64_t others_at = others_every;
  std::uint32_t head_at_look = 0;
  std::uint64_t looked_at = 0;
  std::uint64_t let_in_at = 0;
  std::uint64_t talk_until = 0;

  // Owner, overdue_in_ring (turns.cpp): the ring's head, or one less if the ring was empty, and since when it has been
  // there.
  std::uint32_t waiting_head = ~0u;
  nanos ring_waits_since = 0;

  // Owner, look_whether_alone: dispatches(p) at its next look, and sched.ps_taken at its last look.
  std::uint64_t alone_look_at = 0, taken_before = 0;

  // Owner, shorten_slice: the goroutine that runs, as dispatches(p), has made another ready that is in a hurry, and
  // when it first did so.
  struct {
    atomic<std::uint64_t> by{~std::uint64_t{0}};
    atomic<nanos> since{0};
  } hurry;

  // Owner: the goroutine that last waited for a task's end here, and for how many in a row; null: one was started
  // since.
  struct {
    const G* by = nullptr;
    std::uint32_t n = 0;
  } joins;

  // This P has the turn for newcomers (newcomers.cpp): the goroutine that runs here began by it, and is not known yet.
  // Written under sched.mutex; the owner reads it without the lock.
  atomic<bool> has_turn{false};
  const void* turn_kind = nullptr;  // sched: G::spawn_pc of that goroutine

  // Owner: the newcomer that last began without the turn, and the number of its dispatch, as in dispatches(p).
  struct {
    const void* kind = nullptr;  // G::spawn_pc
    std::uint64_t at = 0;
  } began;

  sleep_crowd sleeps;  // owner
  timer_heap timers;

  // Owner: free Gs, and stacks of the default class, ready for reuse.
  small_stack<G, p_cache> free_gs;
  small_stack<stack, p_cache> free_stacks;
  std::array<free_block_list, block_sizes.size()> free_blocks;
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

// Counts that a goroutine is about to run on p. inherit: it runs in the time slice of the goroutine before.
inline void count_dispatch(P* p, bool inherit) noexcept {
  if (inherit) {
    p->count.inherited.add();
    return;
  }
  p->sched_tick.store(p->sched_tick.load(relaxed) + 1, relaxed);
}
inline std::uint64_t dispatches(const P* p) noexcept { return p->sched_tick.load(relaxed) + p->count.inherited.get(); }

// Changes with each goroutine that p runs, or puts into its ring.
inline std::uint64_t progress(const P* p) noexcept { return dispatches(p) + p->runq.tail(); }

// True while goroutines that came from the global queue as a batch wait in the ring. They are older than what is in the
// global queue, so they go first: a goroutine that yields waits there, and must come after all of them.
inline bool batch_waits(const P* p) noexcept {
  return p->batch_end.load(relaxed) - p->runq.head() - 1 < run_queue_size;
}

// True once in so many time slices: a prime, so that no program's rhythm meets it.
inline bool is_turn_of_global_queue(const P* p) noexcept {
  return static_cast<std::uint32_t>(p->sched_tick.load(relaxed)) % global_queue_every == global_queue_every - 1;
}

}  // namespace weft::rt
