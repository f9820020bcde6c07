// G: a goroutine. It gets a stack when it first runs, and gives it back when it ends: one that waits for its first
// turn is this header only, its closure included if that is small.
//
// Who may touch a G is decided by its state. `set_state` changes that, and at the end of a run() `abandon`:
//
//   state      on a queue   may run   who owns the stack
//   idle       no           no        the free list that holds it, or nobody yet
//   runnable   yes, one     no        the queue
//   running    no           yes       the thread that runs it
//   syscall    no           yes       the thread that runs it; its P may be taken meanwhile
//   waiting    no           no        whoever it waits for: the first to claim it (see "the wake word")
//   dead       no           no        the thread that ran it last, which puts it on a free list
//   abandoned  no           no        nobody, for good: run() ended before it did
//
// The wake word ("who wins a wake-up"). A wait that several parties can end (select, a time limit, cancellation)
// has a ticket: G::begin_wait() makes a new one. Each party that would end the wait calls claim(ticket); exactly
// one gets true, and that one, and nobody else, calls ready(). A claim with an old ticket fails, so a late party
// of an earlier wait does no harm: G memory is never given to another type, so it may look at any time.
// A wait that only one party can end (a plain send or receive: the waiter is unlinked under the channel's lock)
// uses no_ticket, and claim() then only asks whether the goroutine was abandoned. While a run() ends, no goroutine is
// claimed any more, as it would never run: whoever comes later in the same queue, a plain thread, has its turn.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"
#include "runtime/fatal.hpp"
#include "runtime/note.hpp"
#include "runtime/wait_reason.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

// A run() ends. relaxed: who has not seen it yet may still claim one, as if it had come earlier.
inline constinit atomic<bool> goroutines_stop{false};

struct G;
struct thread_state;
struct stack;

enum class g_state : std::uint8_t { idle, runnable, running, syscall, waiting, dead, abandoned };
const char* describe(g_state s) noexcept;

// A goroutine has a stack of ours; the others stand for threads: `scheduler` is an M's own stack ("g0"),
// `foreign` a thread weft did not start, whose park is a futex wait.
enum class g_kind : std::uint8_t { goroutine, scheduler, foreign };

// What __cxa_get_globals() points at: the Itanium C++ ABI's per-thread exception state, which belongs to the
// goroutine here. With its padding, so that a switch copies it in one piece.
struct exception_state {
  void* caught = nullptr;
  unsigned uncaught = 0;
  unsigned padding = 0;
};

// How the processor rounds and what it traps, and which exceptions it saw. A goroutine begins with what its spawner
// has, as a thread does; the switch keeps it for each.
struct float_control {
#if defined(__x86_64__)
  std::uint32_t mxcsr = 0x1f80;
  std::uint16_t x87 = 0x037f;

  // Into the members, and no copy of them: a load of both at once would wait until both stores are in the cache.
  void read_here() noexcept { asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87)); }
  void set_here() const noexcept { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87)); }
#else
  void read_here() noexcept {}
  void set_here() const noexcept {}
#endif
  bool operator==(const float_control&) const noexcept = default;
};

using wait_ticket = std::uint64_t;
inline constexpr wait_ticket no_ticket = 0;

// What is true of few goroutines. In one byte, as each dispatch looks at it.
namespace mark {
inline constexpr std::uint8_t locked_to_thread = 1;  // lock_os_thread
inline constexpr std::uint8_t timed = 2;             // how long it is runnable is measured (latency.hpp)
inline constexpr std::uint8_t pinned_to_thread = 4;  // pin: one thread, which runs others, too
inline constexpr std::uint8_t ended = 8;             // what it ran has returned, and is destroyed
inline constexpr std::uint8_t system = 16;           // ours: not counted, not shown
inline constexpr std::uint8_t uses_seldom = 32;  // some of what is "seldom" used in a G is: to be cleaned at its end
inline constexpr std::uint8_t tied = locked_to_thread | pinned_to_thread;
inline constexpr std::uint8_t for_dispatcher = tied | timed;
}  // namespace mark

// Five cache lines. A goroutine that only runs needs the first two, and the third if it has a closure: each line more
// is one that has to come from another processor's cache for a goroutine that was stolen, or from memory for one in a
// million.
struct alignas(64) G {
  // --- the switch: owned by whoever owns the stack
  void* context = nullptr;  // where the suspended goroutine goes on (jump.hpp); null: it has not begun
  thread_state* thread = nullptr;
  exception_state exceptions;
  int saved_errno = 0;
  g_kind kind = g_kind::goroutine;
  wait_reason reason = wait_reason::none;
  atomic<g_state> state{g_state::idle};
  atomic<std::uint8_t> marks_word{0};  // mark::; changed by whoever owns the goroutine, read by a dump, too

  // --- queues: owned by the list it is on
  G* next = nullptr;

  // --- waking
  atomic<std::uint64_t> wake{0};  // (wait number << 1) | claimed
  void* wake_value = nullptr;     // from the waker to the woken: which party it was

  stack* own_stack = nullptr;
  void* park_frame = nullptr;  // frame of the switch, where a traceback starts; null: it has not begun
  // Since when it waits, or is in a call, in ns of the coarse clock; with mark::timed since when it is runnable, in
  // cpu_ticks.
  atomic<nanos> wait_since{0};

  // --- what it is: written by the spawner before the goroutine is first queued
  std::uint64_t id = 0;
  const void* spawn_pc = nullptr;
  void (*entry)(void*) = nullptr;
  void (*user_entry)(void*) = nullptr;  // what `entry` calls (api/src/go.cpp)
  void* locals = nullptr;               // goroutine-local variables

  // --- what it begins with
  void* closure = nullptr;  // in small_closure, or at the top of the stack
  float_control floating{};
  alignas(16) std::byte small_closure[48];

  // --- seldom
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* tied_to = nullptr;     // mark::tied: the M
  char name[24] = {};
  std::uint32_t lock_depth = 0, pin_depth = 0;
  std::uint32_t no_preemption = 0;  // > 0: nobody takes its P (weft::no_preemption)
  note thread_note;                 // kind foreign: what its park sleeps on
  // Where a plain thread starts it, the run() it is for. In that thread's own G: of the last one that it started.
  std::uint64_t run = 0;

  // --- what it hangs in a queue while it waits without a ticket, and so in one queue only: for whoever it waits for,
  // from before it is published until it runs again. Here and not in its frames, as who wakes a crowd then touches no
  // stack: each lies in a page of its own.
  alignas(64) std::byte wait_node[64];

  std::uint8_t marks() const noexcept { return marks_word.load(relaxed); }
  void set_mark(std::uint8_t m) noexcept { marks_word.store(marks() | m, relaxed); }
  void clear_mark(std::uint8_t m) noexcept { marks_word.store(marks() & static_cast<std::uint8_t>(~m), relaxed); }
  bool is_system() const noexcept { return marks() & mark::system; }
  bool locked_to_thread() const noexcept { return marks() & mark::locked_to_thread; }

  g_state get_state() const noexcept { return state.load(relaxed); }

  // Every change of a state once the G is in use, but for abandon(). What makes the change visible to the next owner is
  // the queue, the lock or the wake-up through which that owner got the G. Release, for a dump: a thread without a P
  // may suspend its goroutine while the world stands still, and who reads that it is runnable reads its stack.
  void set_state(g_state from, g_state to) noexcept {
    WEFT_CHECK(get_state() == from, "goroutine {} is {}, not {}, and cannot become {}", id, describe(get_state()),
               describe(from), describe(to));
    (void)from;
    state.store(to, release);
  }
  void set_state_from_any(g_state to) noexcept { set_state(get_state(), to); }

  // By the goroutine itself, before it publishes the ticket. Relaxed: publishing (a channel's lock) orders it.
  wait_ticket begin_wait() noexcept {
    std::uint64_t number = (wake.load(relaxed) >> 1) + 1;
    wake.store(number << 1, relaxed);
    return number;
  }

  bool stops_with_its_run() const noexcept {
    return WEFT_UNLIKELY(goroutines_stop.load(relaxed)) && kind == g_kind::goroutine;
  }

  // It says who wins, and hands nothing over: begin_wait's store is relaxed, and so is a claim that fails. What the
  // goroutine wrote before it waited is seen through what published the ticket (a channel's lock, a timer's heap), what
  // the winner wrote through ready(). So acq_rel is more than is needed.
  [[nodiscard]] bool claim(wait_ticket ticket) noexcept {
    if (stops_with_its_run()) return false;
    if (ticket == no_ticket) return state.load(relaxed) != g_state::abandoned;
    std::uint64_t want = ticket << 1;
    return wake.compare_exchange_strong(want, want | 1, acq_rel, relaxed);
  }

  // It waits, and nobody wakes it any more.
  bool waits_for_good() const noexcept { return get_state() == g_state::abandoned || stops_with_its_run(); }

  // Ends all waits for good: no claim succeeds afterwards.
  void abandon() noexcept {
    wake.store(((wake.load(relaxed) >> 1) + 1) << 1 | 1, release);
    state.store(g_state::abandoned, release);
  }
};
static_assert(sizeof(G) == 320);

// An intrusive FIFO of Gs through G::next.
class g_list {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  G* front() const noexcept { return head_; }

  void push_back(G* g) noexcept {
    g->next = nullptr;
    if (tail_) {
      tail_->next = g;
    } else {
      head_ = g;
    }
    tail_ = g;
    ++size_;
  }

  G* pop_front() noexcept {
    G* g = head_;
    if (!g) return nullptr;
    head_ = g->next;
    if (!head_) tail_ = nullptr;
    g->next = nullptr;
    --size_;
    return g;
  }

  bool has(const G* g) const noexcept {
    const G* at = head_;
    while (at && at != g) at = at->next;
    return at != nullptr;
  }

  // g is in it.
  void remove(G* g) noexcept {
    g_list others;
    while (G* first = pop_front()) {
      if (first != g) others.push_back(first);
    }
    append(others);
  }

  void append(g_list& other) noexcept {
    if (other.empty()) return;
    if (tail_) {
      tail_->next = other.head_;
    } else {
      head_ = other.head_;
    }
    tail_ = other.tail_;
    size_ += other.size_;
    other = g_list{};
  }

 private:
  G* head_ = nullptr;
  G* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::rt
