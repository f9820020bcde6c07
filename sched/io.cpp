// Waiting for descriptors: how a goroutine or a foreign thread parks for one, and how the goroutines that a poll has
// woken are counted and claimed.
//
// A foreign thread sleeps as a thread, and relies on an M to poll for it. After the end of run() no M does. So the
// foreign threads that wait are on a list. stop_runtime closes the list, and sends away all threads that are on it. A
// thread that comes later finds the list closed. Both happen under the list's lock.

#include "sched/io.hpp"

#include "netpoll/netpoll.hpp"
#include "netpoll/poll_desc.hpp"
#include "sched/park.hpp"
#include "sched/proc.hpp"

namespace weft::rt {

namespace {

struct io_wait_arg {
  poll_desc* pd;
  poll_mode mode;
};

void commit_io(G* g, void* arg) noexcept {
  io_wait_arg a = *static_cast<io_wait_arg*>(arg);
  if (!poll_commit(a.pd, a.mode, g)) ready(g);  // the descriptor became ready, timed out or was closed meanwhile
}

// Called after poll_prepare_wait has returned true.
M* park_for_io(M* m, poll_desc* pd, poll_mode mode) noexcept {
  io_wait_arg arg{pd, mode};
  // Counted before the wait is published, so that an M that goes to sleep does so in the poller.
  auto& waiters = m ? sched.poll_waiters : sched.foreign_poll_waiters;
  waiters.fetch_add(1, seq_cst);
  if (m) {
    P* p = m->p.load(relaxed);
    if (p->next_look.load(relaxed) == 0)
      p->next_look.store(1, relaxed);  // the dispatcher plans its looks at the poller
  } else {
    wakep();  // the foreign thread goes to sleep, so an M has to poll for it
  }
  m = park(m, commit_io, &arg, mode == poll_mode::read ? wait_reason::io_read : wait_reason::io_write);
  // seq_cst: an M that sleeps in the poller because it still counted this wait has announced its sleep before it read
  // the count. So if this M is the last to go to sleep, it sees the other M, and breaks that sleep off
  // (sleep_in_poller).
  waiters.fetch_sub(1, seq_cst);
  poll_finish_wait(pd, mode);
  return m;
}

struct waiting_thread {
  poll_desc* pd;
  poll_mode mode;
  bool sent_away = false;
  list_links<waiting_thread> links{};
};

class thread_list {
 public:
  void open() noexcept {
    lock_guard hold(mutex_);
    closed_ = false;
  }
  bool add(waiting_thread* t) noexcept {
    lock_guard hold(mutex_);
    if (!closed_) threads_.push_back(t);
    return !closed_;
  }
  void remove(waiting_thread* t) noexcept {
    lock_guard hold(mutex_);
    threads_.erase(t);
  }
  void close() noexcept {
    lock_guard hold(mutex_);
    closed_ = true;
    for (waiting_thread* t : threads_) {  // none of them can return before the lock is released
      t->sent_away = true;
      if (G* g = poll_try_again(t->pd, t->mode)) ready(g);
    }
  }

 private:
  lock mutex_{lock_rank::leaf};
  bool closed_ = true;
  linked_list<waiting_thread, &waiting_thread::links> threads_;
};
constinit thread_list waiting_threads;

// Returns false if run() has ended.
bool wait_as_thread(poll_desc* pd, poll_mode mode) noexcept {
  waiting_thread me{pd, mode};
  if (!waiting_threads.add(&me)) return false;
  if (poll_prepare_wait(pd, mode)) (void)park_for_io(nullptr, pd, mode);
  waiting_threads.remove(&me);
  return !me.sent_away;
}

}  // namespace

void let_threads_wait_for_io() noexcept { waiting_threads.open(); }
void send_threads_away_from_io() noexcept { waiting_threads.close(); }

M* io_wait(M* m, poll_desc* pd, poll_mode mode, poll_status* status) noexcept {
  *status = poll_check(pd, mode);
  if (*status != poll_status::ok) return m;
  if (WEFT_UNLIKELY(!m)) {
    *status = wait_as_thread(pd, mode) ? poll_check(pd, mode) : poll_status::closing;
    return nullptr;
  }
  if (poll_prepare_wait(pd, mode)) m = park_for_io(m, pd, mode);
  *status = poll_check(pd, mode);
  return m;
}

namespace {

// Counts the poll, claims the goroutines in `all`, and appends them to `woken`. Foreign threads are woken at once.
void take_woken(g_list& all, g_list& woken) noexcept {
  if (M* m = this_m(); m && m->p.load(relaxed)) {
    m->p.load(relaxed)->count.polls.add();
  } else {
    sched.polls_by_others.fetch_add(1, relaxed);
  }
  while (G* g = all.pop_front()) {
    if (!g->claim(no_ticket)) continue;  // g was left behind by a run() that is over
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
