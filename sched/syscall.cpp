// System calls. An M that goes into one leaves its P behind, with the status `syscall`, and takes it back with one CAS
// if nobody wanted it meanwhile.
//
//   enter_syscall   running → syscall    the M remembers the P, but no longer holds it
//   exit_syscall    syscall → running    the fast case: one CAS
//   sysmon          syscall → idle       the call took too long: the P is handed off (retake)
//   stop the world  syscall → stopped
//
// A goroutine whose last two calls lasted so long that it lost its P does not wait for sysmon, if the P is wanted: it
// hands it off when it begins the next call, as Go does where it is known that a call blocks (entersyscallblock). That
// costs the wake-up of a thread, and a place among those who wait for a P, so a call that turns out to be short ends
// it. Where long calls and short ones alternate, such as a write and an fsync, no call is known to be long.
//
// A goroutine in a system call that calls into weft (in a callback of a library) counts as back from it:
// request::in_syscall sends every entry to finish_syscall.

#include "sched/syscall.hpp"

#include "sched/enter.hpp"
#include "sched/newcomers.hpp"
#include "sched/poller_sleep.hpp"
#include "sched/proc.hpp"
#include "sched/threads.hpp"

#include <cstring>
#include <utility>

namespace weft::rt {

namespace {

// True if something needs p: goroutines are queued, descriptors are waited for, or a timer is due soon. Nobody looks at
// the poller and at timers if all Ps are left behind.
bool somebody_waits(const P* p) noexcept {
  if (!p->runq.empty() || sched.global_size.load(relaxed) != 0 || anybody_waits_for_io()) return true;
  const nanos timer = earliest_timer();
  return timer != 0 && timer - sched.coarse_now.load(relaxed) <= sysmon_is_in_time;
}

constexpr nanos short_call = 50 * microsecond;

// Called when no P idles, and something waits for p, which m has just left behind.
void see_to_those_who_wait(M* m, P* p) noexcept {
  if (!(m->g->marks() & mark::long_calls)) {
    // If the call takes long, sysmon must take this P soon, but its pauses may be long by now.
    if (sched.sysmon.load(relaxed) != sysmon_state::looks) hurry_sysmon();
  } else if (retake_syscall(p)) {
    return_turn(p);
    sched.retakes.fetch_add(1, relaxed);
    handoffp(p);
    m->handed_off_at = nanotime();  // not before: this thread may have waited for the processor after the wake-up
  }
}

// Called when m, back from a call, finds that it lost its P: it has handed it off, or another thread has taken it.
void note_how_long(M* m) noexcept {
  G* g = m->g;
  const nanos since = std::exchange(m->handed_off_at, 0);
  if (since != 0 && nanotime() - since < short_call) {
    g->clear_mark(mark::long_calls);
  } else if (!(g->marks() & mark::long_calls)) {
    const bool second = g->marks() & mark::long_call;
    g->clear_mark(mark::long_call);
    g->set_mark(second ? mark::long_calls : mark::long_call);
  }
}

// Lies in the wait_node of a goroutine in a system call, which waits for nobody else.
static_assert(sizeof(call_site) <= sizeof(G::wait_node));

}  // namespace

void enter_syscall(const call_site& from) noexcept {
  M* m = enter_runtime();
  if (!m) return;  // a foreign thread has no P to leave
  if (m->depth.load(relaxed) == 1) {
    // Other goroutines that are pinned to this thread could not run until the call returns, so g moves to another one.
    if (WEFT_UNLIKELY(m->pins != 0) && !(m->g->marks() & mark::tied)) m = leave_thread(m);
    P* p = m->p.load(relaxed);
    m->g->wait_since.store(sched.coarse_now.load(relaxed), relaxed);
    std::memcpy(m->g->wait_node, &from, sizeof from);
    m->g->set_state(g_state::running, g_state::syscall);
    m->requests.fetch_or(request::in_syscall, relaxed);
    m->syscall_p = p;
    m->p.store(nullptr, relaxed);
    p->m.store(nullptr, release);
    p->syscall_tick.store(p->syscall_tick.load(relaxed) + 1, relaxed);
    // release: the thread that takes the P sees everything that was done with it. One that makes work ready at this
    // moment may not see that the P is left, nor this M that work; sysmon's next round sees both.
    p->status.store(p_status::syscall, release);
    if (sched.idle_ps.load(relaxed) == 0 && somebody_waits(p)) see_to_those_who_wait(m, p);
  }
  leave_runtime(m);
}

void exit_syscall() noexcept {
  M* m = enter_runtime();  // request::in_syscall is set, so this calls finish_syscall
  leave_runtime(m);
}

M* finish_syscall(M* m) noexcept {
  m->requests.fetch_and(~request::in_syscall, relaxed);
  P* p = std::exchange(m->syscall_p, nullptr);
  p_status left = p_status::syscall;
  // acq_rel: the P is ours again, with everything that was done to it.
  if (p->status.compare_exchange_strong(left, p_status::running, acq_rel, relaxed)) {
    m->handed_off_at = 0;  // if m handed it off, another M has left it in a call of its own since
    m->g->set_state(g_state::syscall, g_state::running);
    if (WEFT_UNLIKELY(m->g->marks() & mark::long_call)) m->g->clear_mark(mark::long_call);
    m->p.store(p, relaxed);
    p->m.store(m, release);  // a taker that sees this may take the P at once (enter_slow looks for `revoked` again)
    return m;
  }
  note_how_long(m);
  {
    lock_guard hold(sched.mutex);
    if (P* other = idle_p_to_go_on(m)) {
      acquirep(m, other);
      m->g->set_state(g_state::syscall, g_state::running);
      return m;
    }
  }
  return give_way(m);
}

void trace_in_syscall(const G* g, trace* out) noexcept {
  call_site from;
  std::memcpy(&from, g->wait_node, sizeof from);
  trace_from(from, g, out);
}

bool retake_syscall(P* p) noexcept {
  p_status left = p_status::syscall;
  return p->status.compare_exchange_strong(left, p_status::idle, acq_rel, relaxed);
}

void want_p_of_a_call() noexcept {
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (sched.all_ps[i].load(acquire)->status.load(relaxed) == p_status::syscall) return hurry_sysmon();
  }
}

}  // namespace weft::rt
