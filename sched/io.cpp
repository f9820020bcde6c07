// Waiting for descriptors: the park loop over netpoll's poll words.

#include "netpoll/netpoll.hpp"
#include "sched/proc.hpp"

namespace weft::rt {

namespace {

struct io_wait_arg {
  poll_desc* pd;
  poll_mode mode;
};

void commit_io(G* g, void* arg) noexcept {
  io_wait_arg a = *static_cast<io_wait_arg*>(arg);
  if (!poll_commit(a.pd, a.mode, g)) ready(g);  // it became ready, timed out or was closed on the way
}

}  // namespace

M* io_wait(M* m, poll_desc* pd, poll_mode mode, poll_status* status) noexcept {
  *status = poll_check(pd, mode);
  if (*status != poll_status::ok) return m;
  if (poll_prepare_wait(pd, mode)) {
    io_wait_arg arg{pd, mode};
    // Before the wait is published, so that an M which goes to sleep does it in the poller.
    auto& waiters = m ? sched.poll_waiters : sched.foreign_poll_waiters;
    waiters.fetch_add(1, seq_cst);
    if (m) {
      P* p = m->p.load(relaxed);
      if (p->next_look.load(relaxed) == 0)
        p->next_look.store(1, relaxed);  // the dispatcher plans its looks at the poller
    } else {
      wakep();  // a foreign thread sleeps as a thread: an M has to poll for it
    }
    m = park(m, commit_io, &arg, mode == poll_mode::read ? wait_reason::io_read : wait_reason::io_write);
    waiters.fetch_sub(1, relaxed);
    poll_finish_wait(pd, mode);
  }
  *status = poll_check(pd, mode);
  return m;
}

namespace {

// Counts the poll, and takes from `all` those whose wait it ends.
void take_woken(g_list& all, g_list& woken) noexcept {
  if (M* m = this_m(); m && m->p.load(relaxed)) {
    m->p.load(relaxed)->count.polls.add();
  } else {
    sched.polls_by_others.fetch_add(1, relaxed);
  }
  while (G* g = all.pop_front()) {
    if (!g->claim(no_ticket)) continue;  // left behind by a run() that is over
    if (g->kind == g_kind::foreign) {
      ready(g);
    } else {
      woken.push_back(g);
    }
  }
}

}  // namespace

void poll_network(nanos delay, g_list& woken) noexcept {
  g_list all;
  netpoll(delay, all);
  take_woken(all, woken);
}

void poll_network_punctually(nanos until, g_list& woken) noexcept {
  g_list all;
  netpoll_punctually(until, all);
  take_woken(all, woken);
}

}  // namespace weft::rt
