// G: a goroutine. It gets a stack when it first runs, and gives it back when it ends. So a goroutine that waits for its
// first turn is this header only, which also holds its closure if that is small.
//
// The state of a G decides who may touch it. `set_state` changes the state; at the end of a run(), so does `abandon`:
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
// has a ticket: G::begin_wait() makes a new one. Each party that would end the wait calls claim(ticket); exactly one
// gets true, and only that party calls ready(). A claim with an old ticket fails, so a late party of an earlier wait
// does no harm. It may look at the G at any time, because the memory of a G is never given to another type.
// A wait that only one party can end (a plain send or receive: the waiter is unlinked under the channel's lock)
// uses no_ticket, and claim() then only asks whether the goroutine was abandoned. While a run() ends, no goroutine is
// claimed any more, as it would never run. Instead, a plain thread that waits behind it in the same queue has its turn.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"
#include "runtime/fatal.hpp"
#include "runtime/note.hpp"
#include "runtime/wait_reason.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

// True from the end of a run() until the next one begins. relaxed: a thread that has not seen it yet may still claim a
// goroutine, as if it had come earlier.
inline constinit atomic<bool> goroutines_stop{false};

struct G;
struct thread_state;
struct stack;

enum class g_state : std::uint8_t { idle, runnable, running, syscall, waiting, dead, abandoned };
const char* describe(g_state s) noexcept;

// A `goroutine` has a stack of ours. The others stand for threads: `scheduler` is an M's own stack ("g0"), `foreign` is
// a thread that weft did not start, whose park is a futex wait.
enum class g_kind : std::uint8_t { goroutine, scheduler, foreign };

// What __cxa_get_globals() points at: the Itanium C++ ABI's per-thread exception state, which belongs to the goroutine
// here. The padding is a member, so that a switch copies all of it in one piece.
struct exception_state {
  void* caught = nullptr;
  unsigned uncaught = 0;
  unsigned padding = 0;
};

// How the processor rounds, which floating-point exceptions it traps, and which it has seen. A goroutine begins with
// the settings of its spawner, as a thread does. The switch saves and restores them.
struct float_control {
#if defined(__x86_64__)
  std::uint32_t mxcsr = 0x1f80;
  std::uint16_t x87 = 0x037f;

  // Stores into the members themselves and not into a copy: the copying would load both at once, and wait until both
  // stores are in the cache.
  void read_here() noexcept { asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87)); }
  void set_here() const noexcept { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87)); }
#else
  void read_here() noexcept {}
  void set_here() const noexcept {}
#endif
};

using wait_ticket = std::uint64_t;
inline constexpr wait_ticket no_ticket = 0;

// Properties that few goroutines have. They are in one byte, because each dispatch looks at them.
namespace mark {
inline constexpr std::uint8_t locked_to_thread = 1;  // lock_os_thread
inline constexpr std::uint8_t timed = 2;             // how long it stays runnable is measured (latency.hpp)
inline constexpr std::uint8_t pinned_to_thread = 4;  // pin: stays on one thread, which also runs others
inline constexpr std::uint8_t ended = 8;             // its function has returned, and was destroyed
inline constexpr std::uint8_t system = 16;           // one of weft's own: not counted, not shown
inline constexpr std::uint8_t uses_seldom = 32;      // uses some of the "seldom" members, which are cleaned at its end
inline constexpr std::uint8_t long_call = 64;    // its last system call lasted so long that it lost its P (syscall.cpp)
inline constexpr std::uint8_t long_calls = 128;  // so did the two last ones, at least
inline constexpr std::uint8_t tied = locked_to_thread | pinned_to_thread;
inline constexpr std::uint8_t for_dispatcher = tied | timed;
}  // namespace mark

// Five cache lines. A goroutine that only runs uses the first three. Each further line would have to come from another
// processor's cache for a goroutine that was stolen, or from memory for one of a million goroutines.
struct alignas(64) G {
  // --- the switch: owned by whoever owns the stack
  void* context = nullptr;  // where the suspended goroutine goes on (jump.hpp); null: it has not begun
  thread_state* thread = nullptr;
  exception_state exceptions;
  int saved_errno = 0;
  g_kind kind = g_kind::goroutine;
  wait_reason reason = wait_reason::none;
  atomic<g_state> state{g_state::idle};
  atomic<std::uint8_t> marks_word{0};  // mark::; changed by the goroutine's owner, also read by a dump

  // --- queues: owned by the list it is on
  G* next = nullptr;

  // --- waking
  atomic<std::uint64_t> wake{0};  // (wait number << 1) | claimed
  void* wake_value = nullptr;     // tells the woken goroutine which party woke it

  stack* own_stack = nullptr;
  void* park_frame = nullptr;  // frame of the switch, where a traceback starts; null: it has not begun
  // When its wait or its system call began, in ns of the coarse clock. With mark::timed: when it became runnable, in
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
  void* tied_to = nullptr;     // with mark::tied: the M
  char name[24] = {};
  std::uint32_t lock_depth = 0, pin_depth = 0;
  std::uint32_t no_preemption = 0;  // > 0: nobody takes its P (weft::no_preemption)
  note thread_note;                 // kind foreign: what its park sleeps on
  std::uint64_t run = 0;            // if a plain thread starts this goroutine: the number of the run() it is for

  // --- its node in a queue while it waits without a ticket, and so in one queue only. The node belongs to the party
  // that the goroutine waits for, from before it is published until the goroutine runs again. It is here and not in the
  // goroutine's frames, so that a waker of many goroutines touches no stacks: each of these lies in a page of its own.
  // In a system call it holds where that was called from (syscall.cpp).
  alignas(64) std::byte wait_node[64];

  std::uint8_t marks() const noexcept { return marks_word.load(relaxed); }
  void set_mark(std::uint8_t m) noexcept { marks_word.store(marks() | m, relaxed); }
  void clear_mark(std::uint8_t m) noexcept { marks_word.store(marks() & static_cast<std::uint8_t>(~m), relaxed); }
  bool is_system() const noexcept { return marks() & mark::system; }
  bool locked_to_thread() const noexcept { return marks() & mark::locked_to_thread; }

  g_state get_state() const noexcept { return state.load(relaxed); }

  // Makes every change of state once the G is in use, except abandon()'s. What makes the change visible to the next
  // owner is the queue, the lock or the wake-up through which that owner gets the G. Release is for a dump: a thread
  // without a P may suspend its goroutine while the world stands still, and a dump that reads that the goroutine is
  // runnable then reads its stack.
  void set_state(g_state from, g_state to) noexcept {
    WEFT_CHECK(get_state() == from, "goroutine {} is {}, not {}, and cannot become {}", id, describe(get_state()),
               describe(from), describe(to));
    (void)from;
    state.store(to, release);
  }
  void set_state_from_any(g_state to) noexcept { set_state(get_state(), to); }

  // Called by the goroutine itself, before it publishes the ticket. Relaxed: the store is ordered by what publishes the
  // ticket (a channel's lock).
  wait_ticket begin_wait() noexcept {
    std::uint64_t number = (wake.load(relaxed) >> 1) + 1;
    wake.store(number << 1, relaxed);
    return number;
  }

  bool stops_with_its_run() const noexcept {
    return WEFT_UNLIKELY(goroutines_stop.load(relaxed)) && kind == g_kind::goroutine;
  }

  // True: the caller has won, and must call ready(). The wake word only decides who wins, and hands nothing over, so
  // begin_wait's store is relaxed, and so is a claim that fails. What the goroutine wrote before it waited is seen
  // through what published the ticket (a channel's lock, a timer's heap); what the winner wrote is seen through
  // ready(). So acq_rel is more than is needed.
  [[nodiscard]] bool claim(wait_ticket ticket) noexcept {
    if (stops_with_its_run()) return false;
    if (ticket == no_ticket) return state.load(relaxed) != g_state::abandoned;
    std::uint64_t want = ticket << 1;
    return wake.compare_exchange_strong(want, want | 1, acq_rel, relaxed);
  }

  // True if it waits, and nobody will wake it any more.
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

  // g must be in the list.
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
