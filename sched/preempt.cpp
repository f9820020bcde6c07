// Taking a P from an M that runs user code. The protocol ("revoke") is described in enter.hpp.

#include "sched/preempt.hpp"

#include "runtime/asymmetric.hpp"
#include "runtime/time_slice.hpp"

#include <utility>

namespace weft::rt {

namespace {

// Called under sched.mutex.
void count_as_hog(M* m, bool computes) noexcept {
  if (std::exchange(m->is_hog, computes) == computes) return;
  if (computes) {
    sched.hogs.fetch_add(1, relaxed);
  } else {
    sched.hogs.fetch_sub(1, relaxed);
  }
}

}  // namespace

bool detach_running(P* p) noexcept {
  M* m = p->m.load(acquire);  // finish_syscall's release: m->p = null below comes after that M's own m->p = p
  if (!m || p->status.load(acquire) != p_status::running) return false;
  if (m->depth.load(relaxed) != 0) return false;    // m is in the runtime, and comes by without being asked
  m->requests.fetch_or(request::revoked, seq_cst);  // T1
  heavy_barrier();                                  // T2
  // T3. At least acquire: what m did with the P is visible here. p->m and the status are read again: m may have entered
  // a system call, or another M may have got the P, before the request was made.
  if (m->depth.load(seq_cst) != 0 || p->m.load(relaxed) != m || p->status.load(acquire) != p_status::running) {
    m->requests.fetch_and(~request::revoked, relaxed);
    return false;
  }
  // The goroutine keeps the P (weft::no_preemption). `revoked` stays raised. If m enters now, it waits for the lock
  // that we hold before it can change what is read here. Under the lock it finds that it still has its P.
  if (m->g->no_preemption != 0) return false;
  m->p.store(nullptr, relaxed);
  p->m.store(nullptr, relaxed);
  p->status.store(p_status::idle, relaxed);
  sched.detached.push_back(m);
  sched.detached_ms.fetch_add(1, relaxed);
  return true;
}

void forget_detached(M* m) noexcept {
  count_as_hog(m, false);
  sched.detached.erase(m);
  sched.detached_ms.fetch_sub(1, relaxed);
}

// The Ms that have a P must not wait for the processor behind a thread that computes. Its kernel time slices are made
// long, so that threads with shorter ones come in between (runtime/time_slice.hpp).
void note_detached(M* m, bool computes) noexcept {
  count_as_hog(m, computes);
  computes ? use_long_slices(m->tid.load(relaxed)) : use_usual_slices(m->tid.load(relaxed));
}

// With several Ps, another one comes by and takes what waits here.
void shorten_slice(M* m, nanos now) noexcept {
  P* p = p_of(m);
  if (!p || sched.procs.load(relaxed) != 1 || p->hurry.by.load(relaxed) == dispatches(p)) return;
  p->hurry.since.store(now, relaxed);
  p->hurry.by.store(dispatches(p), release);  // sysmon sees `since`, or a later one
}

nanos hurry_since(const P* p) noexcept {
  const bool still = p->hurry.by.load(acquire) == dispatches(p) && !p->runq.empty();
  return still ? p->hurry.since.load(relaxed) : forever;
}

}  // namespace weft::rt
