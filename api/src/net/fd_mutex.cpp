#include "api/src/net/fd_mutex.hpp"

#include "api/src/support.hpp"
#include "runtime/fatal.hpp"
#include "sched/park.hpp"

namespace weft::net {

using rt::acq_rel;
using rt::acquire;
using rt::relaxed;

namespace {

// G::wake_value points to this after a wait for a turn that ended with the turn.
char granted_mark;

[[noreturn]] void too_many_users() noexcept { rt::fatal("weft::net: more than 1048575 calls at a time on one socket"); }

}  // namespace

// Orders in this file: acquire on the way in, so that a call sees what earlier holders of the lock wrote and what was
// done before the last close; release on the way out, so that the next holder and the closer see what this call did.

bool fd_mutex::enter() noexcept {
  std::uint64_t old = word_.load(relaxed);
  do {
    if (old & closing) return false;
    if (WEFT_UNLIKELY((old & users_mask) == users_mask)) too_many_users();
  } while (!word_.compare_exchange_weak(old, old + user, acquire, relaxed));
  return true;
}

leave fd_mutex::exit() noexcept {
  std::uint64_t old = word_.fetch_sub(user, acq_rel);
  WEFT_CHECK(old & users_mask, "a call left a socket that nobody was in: {:#x}", old);
  return (old & closing) && (old & users_mask) == user ? leave::last : leave::stays;
}

entry fd_mutex::lock(side s) noexcept {
  std::uint64_t old = word_.load(relaxed);
  do {
    if (WEFT_UNLIKELY(old & closing)) return entry::closed_before;
    if (WEFT_UNLIKELY((old & users_mask) == users_mask)) too_many_users();
    if (WEFT_UNLIKELY(old & lock_bit(s))) return lock_slow(s);
  } while (!word_.compare_exchange_weak(old, old + user + lock_bit(s), acquire, relaxed));
  return entry::entered;
}

// Another call had the turn a moment ago.
entry fd_mutex::lock_slow(side s) noexcept {
  rt::runtime_scope scope;  // before this call is counted: a goroutine that is stopped on the way in is no user
  std::uint64_t old = word_.load(relaxed);
  for (;;) {
    if (old & closing) return entry::closed_before;
    if (WEFT_UNLIKELY((old & users_mask) == users_mask)) too_many_users();
    const bool taken = old & lock_bit(s);
    const std::uint64_t next = old + user + (taken ? one_waiter(s) : lock_bit(s));
    if (!word_.compare_exchange_weak(old, next, acquire, relaxed)) continue;
    return taken ? wait_for_turn(s, scope) : entry::entered;
  }
}

leave fd_mutex::unlock(side s) noexcept {
  std::uint64_t old = word_.load(relaxed);
  do {
    WEFT_CHECK(old & lock_bit(s), "unlock of a socket that is not locked: {:#x}", old);
    if (WEFT_UNLIKELY(old & waiters(s))) return unlock_slow(s);
  } while (!word_.compare_exchange_weak(old, old - user - lock_bit(s), acq_rel, relaxed));
  return (old & closing) && (old & users_mask) == user ? leave::last : leave::stays;
}

// Another call waits for the turn, or did a moment ago.
leave fd_mutex::unlock_slow(side s) noexcept {
  go_away(s, rt::this_thread()->g);
  rt::runtime_scope scope;  // from here on this goroutine gets to the end
  come_back(s);
  std::uint64_t old = word_.load(relaxed);
  for (;;) {
    if (!(old & waiters(s))) {
      if (!word_.compare_exchange_weak(old, old - user - lock_bit(s), acq_rel, relaxed)) continue;
      return (old & closing) && (old & users_mask) == user ? leave::last : leave::stays;
    }
    // The lock bit stays set: it becomes the waiter's. This call stays a user until the grant is done with this object.
    if (!word_.compare_exchange_weak(old, old - one_waiter(s), acq_rel, relaxed)) continue;
    switch (grant(s)) {
      case granted::passed_on: return exit();
      case granted::skipped:
      case granted::refused: old = word_.load(relaxed); break;  // the lock is still ours
    }
  }
}

bool fd_mutex::close(bool keep) noexcept {
  std::uint64_t old = word_.load(relaxed);
  do {
    if (old & closing) return false;
    if (WEFT_UNLIKELY((old & users_mask) == users_mask)) too_many_users();
  } while (!word_.compare_exchange_weak(old, ((old & ~waiters_mask) | closing | (keep ? keep_open : 0)) + user, acq_rel,
                                        relaxed));
  rt::runtime_scope scope;
  rt::g_list refused;
  {
    rt::lock_guard hold(mutex_);
    refusing_ = true;
    refused.append(reading_.waiting);
    refused.append(writing_.waiting);
    for (side s : {side::read, side::write}) {
      if (was_left_behind(s)) word_.fetch_sub(user, acq_rel);  // the closer is a user itself, so this is not the last
    }
  }
  while (rt::G* g = refused.pop_front()) {
    if (g->claim(rt::no_ticket)) {
      rt::ready(g);
    } else {
      word_.fetch_sub(user, acq_rel);
    }
  }
  return true;
}

// Called under mutex_. True: the goroutine that has the turn never comes back; its mark is cleared, so it will not be
// found again. acquire: what that goroutine did before.
bool fd_mutex::was_left_behind(side s) noexcept {
  rt::atomic<rt::G*>& away = turn_of(s).away;
  rt::G* g = away.load(acquire);
  if (!g || g->get_state() != rt::g_state::abandoned) return false;
  away.store(nullptr, relaxed);
  return true;
}

// Called under mutex_, by a waiter. True: the waiter has the turn, and waits no more.
bool fd_mutex::inherit(side s) noexcept {
  if (!was_left_behind(s)) return false;
  std::uint64_t old = word_.load(relaxed), next;
  do {
    // If it is closing, close() has counted out all waiters, and refuses this one next.
    next = old - user - (old & closing ? 0 : one_waiter(s));
  } while (!word_.compare_exchange_weak(old, next, acq_rel, relaxed));
  return !(old & closing);
}

// Called under mutex_, by a waiter in the queue that wants to leave. False: a grant or the close is on its way to it,
// so it must stay.
bool fd_mutex::count_out(side s) noexcept {
  std::uint64_t old = word_.load(relaxed);
  do {
    if (old & closing || !(old & waiters(s))) return false;
  } while (!word_.compare_exchange_weak(old, old - one_waiter(s), acq_rel, relaxed));
  return true;
}

// Called under mutex_, which it releases; g, a foreign thread, is in the queue. The goroutine that has the turn may be
// left behind by its run(), and nobody tells a thread. So the thread looks again now and then, and leaves when the
// run() in which it began to wait is over. A party that takes g out of the queue, under mutex_, wakes it.
entry fd_mutex::wait_as_thread(side s, rt::G* g) noexcept {
  turn& t = turn_of(s);
  const std::uint64_t run = number_of_run();
  g->reason = rt::wait_reason::io_turn;
  g->set_state(rt::g_state::running, rt::g_state::waiting);
  g->thread_note.clear();
  mutex_.release_lock();
  while (!g->thread_note.sleep_until(rt::nanotime() + rt::foreign_look_again)) {
    rt::lock_guard hold(mutex_);
    if (!t.waiting.has(g)) continue;
    const bool leaves = run != 0 && number_of_run() != run && count_out(s);
    if (!leaves && !inherit(s)) continue;
    t.waiting.remove(g);
    g->set_state(rt::g_state::waiting, rt::g_state::running);
    return leaves ? entry::closed_meanwhile : entry::inherited;
  }
  if (g->wake_value != &granted_mark) return entry::closed_meanwhile;
  come_back(s);
  if (run == 0 || number_of_run() == run) return entry::entered;
  word_.fetch_add(user, relaxed);  // unlock, which passes the turn on, takes one user off, and the caller another
  (void)unlock(s);
  return entry::closed_meanwhile;
}

entry fd_mutex::wait_for_turn(side s, rt::runtime_scope& scope) noexcept {
  turn& t = turn_of(s);
  mutex_.acquire_lock();
  if (t.kept) {
    t.kept = false;
    mutex_.release_lock();
    return entry::entered;
  }
  if (inherit(s)) {
    mutex_.release_lock();
    return entry::inherited;
  }
  if (refusing_) {
    mutex_.release_lock();
    return entry::closed_meanwhile;
  }
  rt::G* g = scope.g();
  g->wake_value = nullptr;
  t.waiting.push_back(g);
  if (WEFT_UNLIKELY(!scope.m())) return wait_as_thread(s, g);
  scope.resumed_on(rt::park(scope.m(), mutex_, rt::wait_reason::io_turn));
  if (g->wake_value != &granted_mark) return entry::closed_meanwhile;
  come_back(s);
  return entry::entered;
}

fd_mutex::granted fd_mutex::grant(side s) noexcept {
  rt::runtime_scope scope;
  turn& t = turn_of(s);
  rt::G* g;
  {
    rt::lock_guard hold(mutex_);
    if (refusing_) return granted::refused;
    g = t.waiting.pop_front();
    if (!g) {
      t.kept = true;
      return granted::passed_on;
    }
    if (!g->claim(rt::no_ticket)) {
      word_.fetch_sub(user, acq_rel);
      return granted::skipped;
    }
    g->wake_value = &granted_mark;
    go_away(s, g);
  }
  rt::ready(g);
  return granted::passed_on;
}

}  // namespace weft::net
