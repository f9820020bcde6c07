#include "sysmon/gate.hpp"

#include "runtime/fatal.hpp"
#include "sched/newcomers.hpp"
#include "sched/preempt.hpp"
#include "sysmon/thread_state.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace weft::rt {

namespace {

// The gate closes at this many threads that compute without a P, for each P. They share the processors with the Ms: an
// M beside six of them on its processor that needs the processor for 100 µs has used up its share for the next 0.6 ms.
constexpr std::uint32_t hogs_per_p = 6;
// From this many on, a newcomer that computes makes all others wait, not only the suspects, unless its kind was suspect
// already.
constexpr std::uint32_t most_hogs_per_p = 2 * hogs_per_p;
// After a newcomer that computes, the next one waits for first_wait, and as long again for each hog on each P beyond
// those that closed the gate, but not longer than longest_wait.
constexpr nanos first_wait = 10 * millisecond, longest_wait = second;
// A newcomer that has lost its P is held to compute if it uses the processor for `computes_for` after that, or if it
// has been on trial for `longest_trial`.
constexpr nanos computes_for = 200 * microsecond;
constexpr nanos longest_trial = second;
// When this many newcomers of other kinds have lost their Ps during a trial, all wait for its end: these may compute,
// too.
constexpr std::uint32_t most_untried = 4;
// How long newcomers wait at a time while threads run short.
constexpr nanos look_for_threads = 10 * millisecond;

bool too_many_compute(std::uint32_t per_p) noexcept {
  return sched.hogs.load(relaxed) >= per_p * sched.procs.load(relaxed);
}

nanos wait_behind_hogs() noexcept {
  const std::uint32_t procs = sched.procs.load(relaxed), closed_at = hogs_per_p * procs;
  const std::uint32_t beyond = std::max(sched.hogs.load(relaxed), closed_at) - closed_at;
  return std::min(longest_wait, first_wait + first_wait * beyond / procs);
}

// True if nearly max_threads threads are held by goroutines that compute or block. The last ones are for goroutines
// that have begun. Threads that are not held: those that idle, those that wait for their locked goroutine, those that
// have a P, and the one in the poller.
bool threads_run_short() noexcept {
  lock_guard hold(sched.mutex);
  std::uint64_t limit = sched.options.max_threads;
  std::uint64_t reserve = std::min<std::uint64_t>(2 * sched.procs.load(relaxed) + 8, limit / 8);
  std::uint32_t with_p = sched.procs.load(relaxed) - sched.idle_ps.load(relaxed);
  std::uint32_t others = sched.idle_ms + sched.idle_locked_ms + with_p + (sched.last_poll.load(relaxed) == 0 ? 1 : 0);
  return sched.live_ms + reserve > limit + others;
}

// Looks again at one detached M, each in turn: a thread that computed when it lost its P may block by now, or the other
// way round.
void look_at_one_again(nanos now) noexcept {
  M* m;
  std::uint32_t regained;
  {
    lock_guard hold(sched.mutex);
    m = sched.detached.front();
    if (!m) return;
    sched.detached.erase(m);
    sched.detached.push_back(m);
    regained = m->regained;
  }
  // The thread exists, as only sysmon joins threads.
  const thread_does what = look_at_thread(m->tid.load(relaxed), m->use, now);
  if (what == thread_does::unknown) return;
  const bool computes = what == thread_does::compute;
  lock_guard hold(sched.mutex);
  if (m->regained == regained && m->is_hog != computes) note_detached(m, computes);
}

}  // namespace

bool gate::shall_open() const noexcept { return closed_ && newcomers_aside() != 0; }

void gate::look(nanos now, bool took, const defendant& d, bool turn) noexcept {
  if (turn) keeps_turn_ = true;
  if (d.m && !d.had_turn) no_suspect_at_once();
  if (d.m && (d.had_turn || !on_trial_.m)) {
    begin_trial(now, d);
  } else if (d.m) {
    ++untried_;
  }
  if (!closed_ && !took && !keeps_turn_) return;
  if (closed_) look_at_one_again(now);
  bool no_threads = threads_run_short();
  if (!too_many_compute(hogs_per_p) && !no_threads) {
    if (closed_ || keeps_turn_ || on_trial_.m) open();
    return;
  }
  if (!closed_) warn();
  closed_ = true;
  make_newcomers_wait();
  if (on_trial_.m) {
    verdict v = judge(now);
    if (v == verdict::none_yet) {
      if (untried_ >= most_untried) make_suspects_wait(true);
      return;
    }
    const void* kind = std::exchange(on_trial_, {}).kind;
    if (v == verdict::computes) {
      bool surprise = suspect(kind);
      suspects_wait_until_ = now + wait_behind_hogs();
      if (surprise && too_many_compute(most_hogs_per_p)) all_wait_until_ = suspects_wait_until_;
    } else {
      acquit(kind);
      all_wait_until_ = 0;
    }
  }
  if (no_threads) all_wait_until_ = std::max(all_wait_until_, now + look_for_threads);
  let_begin(now);
}

void gate::begin_trial(nanos now, const defendant& d) noexcept {
  on_trial_ = d;
  untried_ = 0;
  trial_began_ = now;
  time_before_ = thread_time(d.m->tid.load(relaxed));
  use_.begin(time_before_, now);
  keeps_turn_ = keeps_turn_ || d.had_turn || withhold_turn();
  put_on_trial(d.kind);
}

// A thread that is about to block wants the processor, too, until it gets it. So the thread is watched until it has
// used the processor for a while, or sleeps.
gate::verdict gate::judge(nanos now) noexcept {
  M* m = on_trial_.m;
  {
    lock_guard hold(sched.mutex);
    if (m->regained != on_trial_.regained) return verdict::blocks;  // it came by, and may have ended since
  }
  const int tid = m->tid.load(relaxed);
  if (look_at_thread(tid, use_, now) == thread_does::sleep) return verdict::blocks;
  nanos time = thread_time(tid);
  if (time < 0 || time - time_before_ >= computes_for || now - trial_began_ >= longest_trial) return verdict::computes;
  return verdict::none_yet;
}

void gate::let_begin(nanos now) noexcept {
  bool all_wait = now < all_wait_until_;
  if (all_wait || now < suspects_wait_until_) {
    make_suspects_wait(all_wait);
  } else {
    let_suspects_begin();
  }
  if (all_wait && !keeps_turn_) keeps_turn_ = withhold_turn();
  if (!all_wait && std::exchange(keeps_turn_, false)) give_turn_back();
}

void gate::open() noexcept {
  closed_ = false;
  on_trial_ = {};
  suspects_wait_until_ = all_wait_until_ = 0;
  let_newcomers_begin();
  if (std::exchange(keeps_turn_, false)) give_turn_back();
}

void gate::warn() noexcept {
  if (std::exchange(warned_, true)) return;
  char text[256];
  auto r = fmt::format_to_n(text, sizeof text,
                            "weft: warning: {} goroutines compute or block on threads of their own, {} of them "
                            "compute; new goroutines begin slowly until some come back.\n",
                            sched.detached_ms.load(relaxed), sched.hogs.load(relaxed));
  write_without_waiting(STDERR_FILENO, {text, std::min(r.size, sizeof text)});
}

}  // namespace weft::rt
