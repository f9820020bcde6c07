// M: an OS thread of weft's. Its own stack ("g0") runs the scheduler's loop.
//
// The comment beside a field says who may touch it, as in p.hpp.
#pragma once

#include "runtime/context.hpp"
#include "runtime/deadline_clock.hpp"
#include "runtime/linked_list.hpp"
#include "runtime/note.hpp"
#include "runtime/overflow.hpp"
#include "runtime/random.hpp"
#include "runtime/stack.hpp"
#include "runtime/way_back.hpp"
#include "sched/help_trial.hpp"
#include "sched/thread_use.hpp"

#include <cstdint>
#include <pthread.h>
#include <string_view>

namespace weft::rt {

struct P;

inline constexpr std::string_view m_name_prefix = "weft-m";  // of its thread's name, before its id

// The goroutines that an M took last from a P's ring. from: null if that theft was judged (steal.cpp).
struct theft {
  P* from = nullptr;
  const P* to = nullptr;
  std::uint64_t at = 0;          // cpu_ticks
  std::uint64_t dispatches = 0;  // of `to` at that time
  std::uint64_t progress = 0;    // of `from`
  std::uint32_t count = 0;
};

// What other threads ask of an M. The M looks at these bits when it enters the runtime, and between goroutines.
namespace request {
inline constexpr std::uint32_t yield = 1;       // its goroutine ran for long: let others run
inline constexpr std::uint32_t revoked = 2;     // its P is being taken or was taken (preempt.cpp)
inline constexpr std::uint32_t stop = 4;        // the world stops
inline constexpr std::uint32_t in_syscall = 8;  // set by the M itself: it left its P behind
inline constexpr std::uint32_t abandoned = 16;  // run() is over: never run again
inline constexpr std::uint32_t hazard = 32;     // for good: WEFT_DEBUG=hazard (hazard.cpp)
inline constexpr std::uint32_t pinned = 64;     // goroutines pinned to it are ready (pin.cpp)
}  // namespace request

//   an M            p     depth  what it does                                      it ends when
//   in user code    set   0      runs its goroutine's code                         it enters (enter.hpp); P taken
//   in the runtime  set   > 0    works, for its goroutine or between two;          it leaves; nobody takes its P
//                                `spinning`: looks for one to run (find.cpp)
//   in a call       null  0      request::in_syscall; syscall_p was left behind    it enters: finish_syscall
//   detached        null  0      request::revoked; its P was taken                 it enters: regain_p
//   in the poller   null  > 0    sleeps in epoll, for all; one M at a time         descriptors, a timer, a break
//   dozing          null  > 0    sleeps on `parked`, `spinning` (doze.cpp)         100 µs have passed; rouse_dozer
//   idle            null  > 0    sleeps on `parked`, in_idle_list                  it is passed next_p; or it is gone
//   tied            null  > 0    sleeps on `parked` until locked_g is ready        it is passed next_p
//   left behind     any   0      request::abandoned: its run() ended without it    never
//   gone            null  -      has left the scheduler's loop; its thread ends    it is joined
struct alignas(cache_line) M : thread_state {
  // In the runtime: > 0 while the M executes runtime code, and no thread takes its P then. Written by this M only.
  atomic<std::uint32_t> depth{1};
  atomic<std::uint32_t> requests{0};
  // The depth at which the user's code runs: 0, or more in the move or the destructor of a channel's value, which may
  // use weft itself. Written by this M only.
  atomic<std::uint32_t> outside_at{0};

  atomic<P*> p{nullptr};         // this M; the thread that detaches its P
  P* next_p = nullptr;           // the thread that wakes this M passes it a P
  P* syscall_p = nullptr;        // this M: the P it left behind
  atomic<bool> spinning{false};  // this M; the thread that wakes or starts it

  // To run next: the fast path took it and may not run it, or a yield stole it, or it came with the P.
  G* picked = nullptr;
  atomic<G*> locked_g{nullptr};  // this M: lock_os_thread

  std::uint32_t pins = 0;         // this M, and sched while it idles: goroutines that are pinned to it
  atomic<bool> in_poller{false};  // this M; kept up to date only while pins != 0
  g_list pinned_ready;            // sched: goroutines pinned to it that other Ms took from a queue
  bool pinned_first = false;      // this M: what comes first next, one of these or its P's queue

  note parked;             // where the M sleeps
  M* next_idle = nullptr;  // sched; when this M is gone: the next one to be joined
  M* prev_idle = nullptr;  // sched
  bool in_idle_list = false;
  list_links<M> in_all;       // sched
  list_links<M> in_detached;  // sched
  bool is_hog = false;        // sched: counted in sched.hogs
  thread_use use;             // sysmon
  bool reported = false;      // sched, while detached: by WEFT_DEBUG=hogs
  nanos held_since = 0;       // sched, while detached: when its goroutine got the P that it lost
  bool leaves = false;        // this M: its thread ends, as it idled for long, or as its locked goroutine has ended
  bool changed = false;       // this M: a goroutine that was tied to it may have changed its thread for good
  bool begins_idle = false;   // set before its thread starts
  int polls_in_a_row = 0;     // this M: the last ones, each of which gave it a goroutine (find.cpp)

  theft last_theft;                  // this M
  std::uint64_t theft_takes_x8 = 0;  // this M: the time of a theft, times 8, in cpu_ticks, a running average
  help_trial help;                   // this M
  std::uint32_t yields_in_vain = 0;  // this M: how often its goroutine yielded to nobody
  nanos handed_off_at = 0;           // this M: when its system call began, if it handed its P off before; else 0
  std::uint64_t met_at_lock = 0;     // this M: when it last took a lock that was held at first (cpu_ticks)
  bool collides = false;             // this M: it collided often since its dispatcher last looked (collisions.hpp)

  ways_back left;        // this M: of the goroutine that left it last
  deadline_clock clock;  // this M
  random_source random;
  G g0;
  stack thread_stack;  // g0's
  signal_stack for_signals;
  std::uint32_t id = 0;
  pthread_t thread{};
  atomic<int> tid{0};          // the kernel's thread id
  std::uint32_t regained = 0;  // sched: how often it came back after its P was taken
  atomic<bool> finished{false};
};

// The P that m holds. Null: it holds none, or m is null (a foreign thread).
inline P* p_of(const M* m) noexcept { return m ? m->p.load(relaxed) : nullptr; }

}  // namespace weft::rt
