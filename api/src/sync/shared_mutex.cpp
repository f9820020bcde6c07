// shared_mutex: waiting, and who comes next ("phases").
//
// As long as nobody waits, the word alone is the lock, and every change is one CAS in the header. Waiters stand in one
// of two queues, and are woken as heirs (heirs.hpp). The bit `waiters` in the word:
//
//   waiters   the queues                                   the word changes
//   0         empty, or an heir is first in one            by CAS
//   1         somebody waits, who does not wait for an     all readers but the last leave by CAS; all else happens
//             heir; the lock is held                       under the bucket
//
// The bit is set by a CAS of a word that says "held", so the last holder's own CAS fails, and it comes to the bucket:
// no wake-up is lost. The bit is also set by an heir that has come and leaves others behind: it holds the lock itself.
//
// The turns: after a writer, all waiting readers are woken; after the last reader, the first writer. But if only the
// other side has a waiter that is old, that side comes next. A waiter that is old is handed the lock, and if it is a
// reader, so are all waiting readers. A writer that comes after a reader is handed the lock, too: running readers take
// their next shares outside the runtime, one CAS each, and as long as their time slices last no heir gets a P. After
// the hand-over they find the lock held, and wait. While a writer waits that is not old, readers still come in; behind
// an old one they queue. So each side waits for `patience`, and then for one turn of the other. A reader that comes in
// after waiting lets the other waiting readers in, unless a writer waits, too: they have queued while a writer was
// inside.
//
// Readers that were woken may take long to come: as long as time slices last, if those that have the Ps only read. If
// they have been on their way for `patience`, or if the writer is old, a writer no longer waits for them (must_wake);
// so that this is seen, it looks again when it has become old. Not before that: an heir that comes in time costs less
// than a lock that is handed over (docs/adr/0052-readers-that-do-not-come.md).
//
// The model is tests/model/rwmutex.pml.

#include "weft/sync/shared_mutex.hpp"

#include "api/src/sync/heirs.hpp"
#include "sched/preempt.hpp"

#include <utility>

namespace weft {

using namespace detail;

namespace {

[[noreturn]] void misuse(const void* m, const char* what, std::uint32_t word) noexcept {
  rt::fatal("weft::shared_mutex at {}: {} ({} readers, {} writer)", m, what, word >> 2, word & 1);
}

heir_waiter* first(const sync_queue& q) noexcept { return static_cast<heir_waiter*>(q.first); }

bool heir_is_first(const sync_queue& q) noexcept { return q.first && first(q)->heir; }

void drop_abandoned(sync_queue& q) noexcept {
  while (q.first && first(q)->abandoned()) remove(q, *q.first);
}

// Claims each waiter that can be claimed, and calls f(waiter) for it. Takes those that cannot be claimed out of the
// queue. Leaves out heirs, which are on their way already.
template <class F>
void claim_each(sync_queue& q, wake_list& woken, F f) noexcept {
  heir_waiter* next = first(q);
  heir_waiter* const last = next ? static_cast<heir_waiter*>(next->prev) : nullptr;
  for (heir_waiter* w = nullptr; w != last;) {
    w = std::exchange(next, static_cast<heir_waiter*>(next->next));
    if (w->heir) continue;
    if (woken.claim(*w)) {
      f(*w);
    } else {
      remove(q, *w);
    }
  }
}

void invite_all(sync_queue& q, wake_list& woken, rt::nanos now) noexcept {
  claim_each(q, woken, [=](heir_waiter& w) noexcept { w.invite(now); });
}

// Returns how many were handed the lock.
std::uint32_t hand_over_to_all(sync_queue& q, wake_list& woken) noexcept {
  std::uint32_t n = 0;
  claim_each(q, woken, [&](heir_waiter& w) noexcept {
    w.handed_over = true;
    remove(q, w);
    ++n;
  });
  return n;
}

// Whether w, which could not be claimed, has been woken by its own timer to look again. It finds what it is given here.
bool is_coming_back(const heir_waiter& w) noexcept { return w.comes_back && !w.g->waits_for_good(); }

// Whether writer w has waited long enough for readers that are on their way, of whom r is the first.
bool waits_no_longer(const heir_waiter& w, const heir_waiter& r, rt::nanos now) noexcept {
  return r.is_late(now) || w.is_old(now);
}

}  // namespace

// Called under the bucket, as are the functions below up to wait(). True: somebody waits, and not for an heir.
bool shared_mutex::must_wake() noexcept {
  drop_abandoned(writers_);
  drop_abandoned(readers_);
  if (heir_is_first(writers_)) return false;
  if (heir_is_first(readers_))
    return writers_.first && waits_no_longer(*first(writers_), *first(readers_), rt::nanotime());
  return writers_.first || readers_.first;
}

// Called after the queues have changed. If it sets `waiters`, the caller holds the lock, or looks next whether nobody
// does.
void shared_mutex::settle() noexcept {
  bool is = (word_.load(rt::relaxed) & waiters) != 0;
  if (must_wake() == is) return;
  // A read-modify-write, so that the next thread that locks still sees an unlock before it.
  is ? word_.fetch_and(~waiters, rt::relaxed) : word_.fetch_or(waiters, rt::relaxed);
}

// True: taken. False: the lock is held; with if_held::mark, `waiters` is set then.
bool shared_mutex::take(side s, if_held h) noexcept {
  drop_abandoned(writers_);
  const heir_waiter* w = first(writers_);
  bool behind_writer = s == side::reader && w && !w->heir && w->is_old(rt::nanotime());
  std::uint32_t word = word_.load(rt::relaxed);
  for (;;) {
    std::uint32_t holders = word & ~waiters;
    bool free = holders == 0 || (s == side::reader && holders != writer && !behind_writer);
    if (!free && h == if_held::leave) return false;
    std::uint32_t next = !free ? word | waiters : word + (s == side::reader ? reader : writer);
    // acquire: sees what was done under the lock before. relaxed if it fails or sets only `waiters`: nothing is taken.
    if (word_.compare_exchange_weak(word, next, rt::acquire, rt::relaxed)) return free;
  }
}

// Called when nobody holds the lock, the caller held it last and nobody else can take it. Wakes the waiters whose turn
// it is, or hands the lock over, and publishes the word, which is the last access.
void shared_mutex::pass_on(wake_list& woken, side from) noexcept {
  std::uint32_t holders = 0;
  rt::nanos now = rt::nanotime();
  while (holders == 0 && must_wake()) {
    rt::shorten_slice(rt::this_m(), now);
    heir_waiter* w = first(writers_);
    heir_waiter* r = heir_is_first(readers_) ? nullptr : first(readers_);  // heirs have been woken already
    bool old_writer = w && w->is_old(now), old_reader = r && r->is_old(now);
    side to = !r || (w && from == side::reader) ? side::writer : side::reader;
    if (old_writer != old_reader) to = old_writer ? side::writer : side::reader;
    if (to == side::reader) {
      if (old_reader) {
        holders = reader * hand_over_to_all(readers_, woken);
      } else {
        invite_all(readers_, woken, now);
      }
    } else if (const bool claimed = woken.claim(*w); !claimed && !is_coming_back(*w)) {
      remove(writers_, *w);
    } else if (old_writer || from == side::reader || !claimed) {
      w->handed_over = true;
      remove(writers_, *w);
      holders = writer;
    } else {
      w->invite(now);
    }
  }
  // release: what was done under the lock, also by the readers before, whose unlocks the caller has acquired. seq_cst:
  // a try that begins after unlock() has returned sees that the lock is free, or whose it is. If it is free it is not
  // marked, even if readers that are on their way have become late just now, or a writer old.
  word_.store(holders != 0 && must_wake() ? holders | waiters : holders, rt::seq_cst);
}

// Lets the waiting readers in, unless a writer waits, too. Called while readers are inside, the last of whom leaves
// only after this.
void shared_mutex::let_readers_in(wake_list& woken) noexcept {
  drop_abandoned(writers_);
  if (writers_.first || !readers_.first) return;
  // acquire, on behalf of the readers that are handed the lock here: they see what a writer did before.
  word_.fetch_add(reader * hand_over_to_all(readers_, woken), rt::acquire);
}

// Called when w stops waiting. It may have been the last writer that readers waited for.
void shared_mutex::give_up(heir_waiter& w, side s, wake_list& woken) noexcept {
  remove(queue_of(s), w);
  // Since `waiters` is set, the last reader comes to the bucket.
  if (s == side::writer && (word_.load(rt::relaxed) & (waiters | writer)) == waiters) let_readers_in(woken);
  settle();
  // The lock is free, and somebody waits: an heir was abandoned. Nobody takes the lock without the bucket now.
  if (word_.load(rt::acquire) == waiters) pass_on(woken, s);
}

bool shared_mutex::wait(side s, std::int64_t deadline) {
  if (look(lock_looks, [&]() noexcept { return try_take(s); })) return true;

  struct attempt {
    bool take() noexcept { return m.try_take(s); }
    // Where readers come and go all the time, those that look take the word's cache line away from them.
    bool take_soon() noexcept { return false; }
    bool take_or_queue() noexcept {
      if (m.take(s, if_held::mark)) return true;
      if (!w.queued) push_back(m.queue_of(s), w);
      return false;
    }
    void taken() noexcept {
      if (w.queued) remove(m.queue_of(s), w);
      if (s == side::reader) m.let_readers_in(woken);  // those that came while a writer was inside
      m.settle();
    }
    // A writer does so when it has become old: from then on it counts beside any readers that are on their way.
    std::int64_t look_again_at() noexcept {
      return s == side::writer && !w.is_old(rt::nanotime()) ? w.since + patience : never_ns;
    }
    void give_up() noexcept { m.give_up(w, s, woken); }

    shared_mutex& m;
    const side s;
    heir_waiter& w;
    wake_list& woken;
  };
  rt::runtime_scope scope;
  heir_waiter w(scope.g());
  wake_list woken;
  auto why = s == side::reader ? rt::wait_reason::shared_mutex_lock_shared : rt::wait_reason::shared_mutex_lock;
  return lock_as_heir(scope, w, queue_lock(this), why, deadline, attempt{*this, s, w, woken});
}

bool shared_mutex::lock_slow(std::int64_t deadline) { return wait(side::writer, deadline); }

bool shared_mutex::lock_shared_slow(std::int64_t deadline) { return wait(side::reader, deadline); }

bool shared_mutex::try_lock_shared_slow() noexcept {
  rt::runtime_scope scope;
  rt::lock_guard hold(queue_lock(this));
  bool taken = take(side::reader, if_held::leave);
  if (taken) settle();
  return taken;
}

void shared_mutex::unlock_slow() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::uint32_t word = word_.load(rt::relaxed);
  if (!(word & writer)) misuse(this, "unlock, but no writer holds it", word);
  pass_on(woken, side::writer);
}

void shared_mutex::unlock_shared_slow() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::uint32_t word = word_.load(rt::acquire);
  for (;;) {
    if (word < reader) misuse(this, "unlock_shared, but no reader holds it", word);
    if (word == (reader | waiters)) break;  // the last reader, and it stays so: nobody comes or goes without the bucket
    if (word_.compare_exchange_weak(word, word - reader, rt::release, rt::acquire)) return;
  }
  pass_on(woken, side::reader);
}

}  // namespace weft
