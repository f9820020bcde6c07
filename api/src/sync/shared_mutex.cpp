// shared_mutex: waiting, and who comes next ("phases").
//
// As long as nobody waits, the word alone is the lock, and every change is one instruction in the header. Waiters stand
// in two queues (shared_mutex_queues.hpp), and are woken as heirs (heirs.hpp). The bit `waiters` in the word:
//
//   waiters   the queues                                   who frees the lock
//   0         empty, or an heir is first in one            does no more
//   1         somebody waits, who does not wait for an     comes to the bucket, to see who is next
//             heir, or nobody does any more
//
// The bit is set by a CAS of a word that has holders or visitors, so whoever takes the last of these away finds it, and
// no wake-up is lost. It is also set by an heir that has come and leaves others behind, which holds the lock itself,
// and by one that gives up, which then looks whether the lock is free.
//
// "visits". A reader counts itself in before it looks: one fetch_add, instead of a load and a CAS that depends on it.
// If there is no writer, and nobody must be woken, it has its share. Otherwise it is a visitor, and counts itself out
// again, before it enters the runtime, where a goroutine may be stopped for good. But if the word has lost both bits
// meanwhile, the visit is a share: while it counts, nobody takes the lock alone. And if no writer is inside, and nobody
// else counts any more, it has to be one: somebody waits, the last reader has left without a look, and counts on the
// visitor, which passes the lock on when it leaves as any reader does. So a count beside `writer` is of visitors, one
// beside `waiters` of readers and visitors, and any other one of readers.
//
// "left". A reader leaves with one fetch_sub. If that makes the word `waiters` alone, the lock is left: it is free, and
// the reader comes to the bucket to pass it on (pass_on_left). Meanwhile another reader may come in:
//
//     a reader                            a visitor
//     L0  reader|waiters -> waiters       V0  waiters -> reader|waiters: a share
//     L1  waiters -> writer|waiters       V1  reader|waiters -> waiters; then L1, too
//
//   If L1 finds a count, or a writer, whoever that is passes the lock on in its turn. If not, the lock is left still,
//   or again, and it may be passed on by anybody who has left it. So the reader of L0 may come to the bucket when the
//   lock was passed on by others long ago, and when the mutex is gone. It touches no mutex for which nobody waits: a
//   waiter is inside lock(), so a mutex exists at that address, the same one or another, which is left, or is not. If
//   nobody waits any more, the mark stays, and the next one that comes to the bucket takes the lock (take).
//
//   A reader that its run() has left behind may be stopped on the way to L1, as it may be stopped with the lock in its
//   hands. Its mutex is left then until somebody comes by who may take it: a reader, unless it would come behind an old
//   writer; a thread whose turn it is, which looks again every 100 ms; or anybody if nobody waits.
//
// The turns: after a writer, all waiting readers are woken; after the last reader, the first writer. But if only the
// other side has a waiter that is old, that side comes next. A waiter that is old is handed the lock, and if it is a
// reader, so are all waiting readers. A writer that comes after a reader is handed the lock, too: running readers take
// their next shares outside the runtime, and as long as their time slices last no heir gets a P. After the hand-over
// they find the lock held, and wait. While a writer waits that is not old, readers still come in; behind an old one
// they queue. So each side waits for `patience`, and then for one turn of the other. A reader that comes in after
// waiting lets the other waiting readers in, unless a writer waits, too: they have queued while a writer was inside.
//
// Readers that were woken may take long to come: as long as time slices last, if those that have the Ps only read. If
// they have been on their way for `patience`, or if the writer is old, a writer no longer waits for them (must_wake);
// so that this is seen, it looks again when it has become old. Not before that: an heir that comes in time costs less
// than a lock that is handed over (docs/adr/0052-readers-that-do-not-come.md).
//
// The model is tests/model/rwmutex.pml.

#include "weft/sync/shared_mutex.hpp"

#include "api/src/sync/shared_mutex_queues.hpp"
#include "sched/preempt.hpp"

namespace weft {

using namespace detail;

namespace {

[[noreturn]] void misuse(const void* m, const char* what, std::uint32_t word) noexcept {
  rt::fatal("weft::shared_mutex at {}: {} ({} readers, {} writer)", m, what, word >> 2, word & 1);
}

// Whether w, which could not be claimed, has been woken by its own timer to look again. It finds what it is given here.
bool is_coming_back(const heir_waiter& w) noexcept { return w.comes_back && !w.g->waits_for_good(); }

// Whether writer w has waited long enough for readers that are on their way, of whom r is the first.
bool waits_no_longer(const heir_waiter& w, const heir_waiter& r, rt::nanos now) noexcept {
  return r.is_late(now) || w.is_old(now);
}

// True: somebody waits, and not for an heir.
bool must_wake(shared_mutex_queues& q) noexcept {
  q.drop_abandoned();
  const heir_waiter *w = q.first(lock_side::writer), *r = q.first(lock_side::reader);
  if (w && w->heir) return false;
  if (r && r->heir) return w && waits_no_longer(*w, *r, rt::nanotime());
  return w || r;
}

}  // namespace

// Called after the queues have changed. If it sets `waiters`, the caller holds the lock, or looks next whether nobody
// does.
void shared_mutex::settle(queues& q) noexcept {
  bool is = (word_.load(rt::relaxed) & waiters) != 0;
  if (must_wake(q) == is) return;
  // A read-modify-write, so that the next thread that locks still sees an unlock before it.
  is ? word_.fetch_and(~waiters, rt::relaxed) : word_.fetch_or(waiters, rt::relaxed);
}

// Who is next when one of side `from` has freed the lock.
struct shared_mutex::turn {
  turn(queues& q, side from, rt::nanos now) noexcept : w(q.first(side::writer)), r(q.first(side::reader)) {
    if (r && r->heir) r = nullptr;  // heirs have been woken already
    old_writer = w && w->is_old(now);
    old_reader = r && r->is_old(now);
    to = !r || (w && from == side::reader) ? side::writer : side::reader;
    if (old_writer != old_reader) to = old_writer ? side::writer : side::reader;
  }
  bool is_of(const shared_mutex_waiter& q) const noexcept { return &q == (to == side::writer ? w : r); }

  shared_mutex_waiter *w, *r;
  bool old_writer, old_reader;
  side to;
};

// True: taken. False: the lock is held, or is another one's turn; with if_held::mark, `waiters` is set then. queued:
// the caller, if it waits already; otherwise null.
bool shared_mutex::take(queues& q, side s, const shared_mutex_waiter* queued, if_held h) noexcept {
  q.drop_abandoned();
  const heir_waiter* w = q.first(side::writer);
  const bool behind_writer = s == side::reader && w && !w->heir && w->is_old(rt::nanotime());
  const bool joins_readers = s == side::reader && !behind_writer;
  const bool takes_left =
      joins_readers || !q.mutex() || (queued && turn(q, side::reader, rt::nanotime()).is_of(*queued));
  std::uint32_t word = word_.load(rt::relaxed);
  for (;;) {
    const bool free = word == 0 || (word == waiters ? takes_left : joins_readers && (word & writer) == 0);
    if (!free && h == if_held::leave) return false;
    std::uint32_t next = !free ? word | waiters : word + (s == side::reader ? reader : writer);
    // acquire: sees what was done under the lock before. relaxed if it fails or sets only `waiters`: nothing is taken.
    if (word_.compare_exchange_weak(word, next, rt::acquire, rt::relaxed)) return free;
  }
}

// Called by one that has the lock alone. Wakes the waiters whose turn it is, or hands the lock over, and publishes the
// word, which is the last access. from: who held it last.
void shared_mutex::pass_on(queues& q, wake_list& woken, side from) noexcept {
  std::uint32_t holders = 0;
  rt::nanos now = rt::nanotime();
  while (holders == 0 && must_wake(q)) {
    rt::shorten_slice(rt::this_m(), now);
    const turn t(q, from, now);
    if (t.to == side::reader) {
      if (t.old_reader) {
        holders = reader * q.hand_over_to_all(side::reader, woken);
      } else {
        q.invite_all(side::reader, woken, now);
      }
    } else if (const bool claimed = woken.claim(*t.w); !claimed && !is_coming_back(*t.w)) {
      q.remove(*t.w);
    } else if (t.old_writer || from == side::reader || !claimed) {
      t.w->handed_over = true;
      q.remove(*t.w);
      holders = writer;
    } else {
      t.w->invite(now);
    }
  }
  const bool marked = (word_.load(rt::relaxed) & waiters) != 0;  // changes only under the bucket
  const bool mark = holders != 0 && must_wake(q);
  // Added, since visitors come and go meanwhile. release: what was done under the lock, also by the readers that left
  // it; for those that are woken, acquired here. seq_cst: a try that begins after unlock() has returned sees that the
  // lock is free, or whose it is. If it is free it is not marked, even if readers that are on their way have become
  // late just now, or a writer old.
  word_.fetch_add(holders - writer + (mark ? waiters : 0) - (marked ? waiters : 0), rt::seq_cst);
}

// Passes the lock on if it is left.
void shared_mutex::pass_on_if_left(queues& q, wake_list& woken) noexcept {
  std::uint32_t left = waiters;
  // relaxed: what the readers did that left it, pass_on acquires. The caller has the lock alone then.
  if (word_.compare_exchange_strong(left, waiters | writer, rt::relaxed, rt::relaxed)) pass_on(q, woken, side::reader);
}

// Lets the waiting readers in, unless a writer waits, too. Called while no writer is inside, and nobody can take the
// lock alone.
void shared_mutex::let_readers_in(queues& q, wake_list& woken) noexcept {
  q.drop_abandoned();
  if (q.first(side::writer) || !q.first(side::reader)) return;
  // acquire, on behalf of the readers that are handed the lock here: they see what a writer did before.
  word_.fetch_add(reader * q.hand_over_to_all(side::reader, woken), rt::acquire);
}

// Called when w stops waiting. It may have been the last writer that readers waited for.
void shared_mutex::give_up(queues& q, shared_mutex_waiter& w, wake_list& woken) noexcept {
  q.remove(w);
  // If `waiters` is set, nobody takes the lock alone without the bucket.
  if (w.side == side::writer && (word_.load(rt::relaxed) & (waiters | writer)) == waiters) let_readers_in(q, woken);
  settle(q);
  pass_on_if_left(q, woken);
}

bool shared_mutex::wait(side s, std::int64_t deadline) {
  if (look(lock_looks, [&]() noexcept { return try_take(s); })) return true;

  struct attempt {
    bool take() noexcept { return m.try_take(w.side); }
    // Where readers come and go all the time, those that look take the word's cache line away from them.
    bool take_soon() noexcept { return false; }
    bool take_or_queue() noexcept {
      if (m.take(q, w.side, w.queued ? &w : nullptr, if_held::mark)) return true;
      if (!w.queued) q.push_back(w);
      return false;
    }
    void taken() noexcept {
      if (w.queued) q.remove(w);
      if (w.side == side::reader) m.let_readers_in(q, woken);  // those that came while a writer was inside
      m.settle(q);
    }
    // A writer does so when it has become old: from then on it counts beside any readers that are on their way.
    std::int64_t look_again_at() noexcept {
      return w.side == side::writer && !w.is_old(rt::nanotime()) ? w.since + patience : never_ns;
    }
    void give_up() noexcept { m.give_up(q, w, woken); }

    shared_mutex& m;
    shared_mutex_waiter& w;
    queues& q;
    wake_list& woken;
  };
  rt::runtime_scope scope;
  queues q(this);
  shared_mutex_waiter w(scope.g(), this, s);
  wake_list woken;
  auto why = s == side::reader ? rt::wait_reason::shared_mutex_lock_shared : rt::wait_reason::shared_mutex_lock;
  return lock_as_heir(scope, w, q.bucket.mutex, why, deadline, attempt{*this, w, q, woken});
}

bool shared_mutex::lock_slow(std::int64_t deadline) { return wait(side::writer, deadline); }

bool shared_mutex::lock_shared_slow(std::int64_t deadline) { return wait(side::reader, deadline); }

void shared_mutex::lock_shared_visiting() {
  if (!end_visit()) lock_shared_slow(never_ns);
}

// True: the visit is a share.
bool shared_mutex::end_visit() noexcept {
  std::uint32_t word = word_.load(rt::acquire);
  while ((word & (writer | waiters)) != 0 && word != (reader | waiters)) {
    // If it fails, the visit may have become a share, behind a writer's unlock: acquire. Nothing is taken where it
    // succeeds, but g++ 12 warns of an order that is weaker than that of a failure.
    if (word_.compare_exchange_weak(word, word - reader, rt::acquire, rt::acquire)) return false;
  }
  return true;
}

bool shared_mutex::try_under_bucket(side s) noexcept {
  rt::runtime_scope scope;
  queues q(this);
  rt::lock_guard hold(q.bucket.mutex);
  bool taken = take(q, s, nullptr, if_held::leave);
  if (taken) settle(q);
  return taken;
}

bool shared_mutex::try_lock_slow() noexcept { return try_under_bucket(side::writer); }

bool shared_mutex::try_lock_shared_slow() noexcept { return try_under_bucket(side::reader); }

void shared_mutex::unlock_slow() noexcept {
  // Visitors do not keep the lock from being freed.
  std::uint32_t word = word_.load(rt::relaxed);
  while ((word & waiters) == 0) {
    if ((word & writer) == 0) misuse(this, "unlock, but no writer holds it", word);
    if (word_.compare_exchange_weak(word, word - writer, rt::release, rt::relaxed)) return;
  }
  rt::runtime_scope scope;
  wake_list woken;
  queues q(this);
  rt::lock_guard hold(q.bucket.mutex);
  word = word_.load(rt::relaxed);
  if ((word & writer) == 0) misuse(this, "unlock, but no writer holds it", word);
  pass_on(q, woken, side::writer);
}

// left: what the word was then. The mutex may be gone.
void shared_mutex::unlock_shared_slow(const void* address, std::uint32_t left) noexcept {
  if ((left & (writer | below_zero)) != 0) misuse(address, "unlock_shared, but no reader holds it", left + reader);
  if (left == waiters) pass_on_left(address);
}

// Called by a reader that has left the lock ("left").
void shared_mutex::pass_on_left(const void* address) noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  queues q(address);
  rt::lock_guard hold(q.bucket.mutex);
  q.drop_abandoned();
  if (shared_mutex* m = q.mutex()) m->pass_on_if_left(q, woken);
}

}  // namespace weft
