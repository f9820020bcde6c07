#include "netpoll/poll_desc.hpp"

#include "netpoll/netpoll.hpp"

#include <cerrno>
#include <new>

namespace weft::rt {

namespace {

struct desc_pool {
  lock mutex{lock_rank::leaf};
  poll_desc* free = nullptr;
};
constinit desc_pool pool;

constinit atomic<poll_desc*> all_made{nullptr};

// Makes a descriptor, which lives as long as the process.
poll_desc* make_desc() {
  auto* pd = new poll_desc;
  pd->next_made = all_made.load(relaxed);
  // release: poll_open_again, which walks the list, sees the descriptor's fields.
  while (!all_made.compare_exchange_weak(pd->next_made, pd, release, relaxed)) {}
  return pd;
}

constinit ready_function ready_goroutine = nullptr;

// Called under pd->mutex. Publishes closing, the passed deadlines and the tag.
void publish(poll_desc* pd, bool closing) noexcept {
  std::uint32_t bits = pd->info.load(relaxed) & ~((1u << poll_desc::tag_shift) - 1);
  if (closing) bits |= poll_desc::closing;
  if (pd->read.deadline.load(relaxed) < 0) bits |= poll_desc::read_passed;
  if (pd->write.deadline.load(relaxed) < 0) bits |= poll_desc::write_passed;
  // seq_cst: Go's "publishInfo". A goroutine stores its poll word and then reads info (poll_prepare_wait). A thread
  // that closes the descriptor, or whose deadline timer fires, stores info and then looks at the poll word. At least
  // one of the two sees the other.
  pd->info.store(bits, seq_cst);
}

bool is_closing(const poll_desc* pd) noexcept { return pd->info.load(relaxed) & poll_desc::closing; }

// Takes the goroutine that waits in this direction; null if none does. `left` is what goes into the word: `ready`
// leaves a notification; `nil` leaves none, but does not take away one that is kept.
G* unblock(poll_desc::direction& d, std::uintptr_t left) noexcept {
  std::uintptr_t old = d.word.load(seq_cst);
  for (;;) {
    if (old == poll_desc::ready || old == left) return nullptr;
    // acq_rel: the goroutine's commit published what it wrote before. seq_cst: for the pairing with info.
    if (d.word.compare_exchange_strong(old, left, seq_cst, seq_cst)) {
      return old > poll_desc::wait ? reinterpret_cast<G*>(old) : nullptr;
    }
  }
}

void deadline_passed(poll_desc* pd, poll_mode m, std::uint64_t seq) noexcept {
  G* g = nullptr;
  {
    lock_guard hold(pd->mutex);
    poll_desc::direction& d = pd->at(m);
    if (seq != d.seq) return;  // the deadline was changed, or the descriptor has a new use by now
    d.deadline.store(-1, relaxed);
    publish(pd, is_closing(pd));
    g = unblock(d, poll_desc::nil);
  }
  if (g) ready_goroutine(g);
}

void read_deadline_passed(timer* t, std::uint64_t seq, nanos) noexcept {
  deadline_passed(static_cast<poll_desc::deadline_timer*>(t)->of, poll_mode::read, seq);
}
void write_deadline_passed(timer* t, std::uint64_t seq, nanos) noexcept {
  deadline_passed(static_cast<poll_desc::deadline_timer*>(t)->of, poll_mode::write, seq);
}

// Called under pd->mutex. Arms the deadline's timer. True: the poller sleeps too long for this deadline. If it throws
// std::bad_alloc, nothing has changed.
bool arm(timer_heap& here, poll_desc* pd, poll_mode m, nanos deadline) {
  poll_desc::direction& d = pd->at(m);
  auto passed = m == poll_mode::read ? read_deadline_passed : write_deadline_passed;
  if (!d.passing) d.passing = new poll_desc::deadline_timer(pd);
  bool earliest = change_timer(here, d.passing, {deadline, 0, passed, d.seq + 1}).earliest;
  ++d.seq;
  return earliest;
}

}  // namespace

void poll_set_ready(ready_function f) noexcept { ready_goroutine = f; }

poll_desc* poll_open(int fd, int* error) {
  *error = netpoll_init();
  if (*error) return nullptr;
  poll_desc* pd;
  {
    lock_guard hold(pool.mutex);
    pd = pool.free;
    if (pd) pool.free = pd->next;
  }
  if (!pd) pd = make_desc();
  {
    lock_guard hold(pd->mutex);
    pd->fd = fd;
    pd->next = nullptr;
    pd->read.deadline.store(0, relaxed);
    pd->write.deadline.store(0, relaxed);
    ++pd->read.seq;
    ++pd->write.seq;
    pd->read.word.store(poll_desc::nil, relaxed);
    pd->write.word.store(poll_desc::nil, relaxed);
    pd->special.store(false, relaxed);
    std::uint32_t tag = (pd->tag() + 1) & 0xffffff;
    pd->info.store(tag << poll_desc::tag_shift, release);
  }
  *error = netpoll_add(fd, pd, pd->tag());
  if (*error) {
    poll_free(pd);
    return nullptr;
  }
  pd->registered = true;
  return pd;
}

// Called in the child of a fork(), by the first of its threads that comes to netpoll_init. Meanwhile
//   - a thread that opens a descriptor calls netpoll_init, too, and waits there for us;
//   - a thread may free a descriptor that was open before the fork, just before we register it. Then nobody waits for
//     the events of that descriptor, and they are dropped.
int poll_open_again() noexcept {
  for (poll_desc* pd = all_made.load(acquire); pd; pd = pd->next_made) {
    if (!pd->registered) continue;
    int error = netpoll_add(pd->fd, pd, pd->tag());
    if (error == ENOMEM || error == ENOSPC) return error;
    // Any other error: the descriptor was closed without our knowledge, for example by code that closes all descriptors
    // that it inherited.
    if (error) pd->registered = false;
  }
  return 0;
}

void poll_set_deadlines_again(timer_heap& here) {
  const nanos now = nanotime();
  for (poll_desc* pd = all_made.load(acquire); pd; pd = pd->next_made) {
    lock_guard hold(pd->mutex);
    if (pd->fd < 0 || is_closing(pd)) continue;
    for (poll_mode m : {poll_mode::read, poll_mode::write}) {
      poll_desc::direction& d = pd->at(m);
      const nanos deadline = d.deadline.load(relaxed);
      if (deadline <= 0) continue;
      if (deadline <= now) {
        d.deadline.store(-1, relaxed);  // nobody is woken: the end of run() has sent away the threads that waited
      } else {
        arm(here, pd, m, deadline);
      }
    }
    publish(pd, false);
  }
}

void poll_evict(poll_desc* pd, g_list& woken) noexcept {
  timer* timers[2];
  {
    lock_guard hold(pd->mutex);
    timers[0] = pd->read.passing;
    timers[1] = pd->write.passing;
    ++pd->read.seq;
    ++pd->write.seq;
    publish(pd, true);
    if (G* g = unblock(pd->read, poll_desc::nil)) woken.push_back(g);
    if (G* g = unblock(pd->write, poll_desc::nil)) woken.push_back(g);
  }
  for (timer* t : timers) {
    if (t) del_timer(t, nullptr);
  }
}

void poll_free(poll_desc* pd) noexcept {
  if (pd->registered) {
    netpoll_remove(pd->fd);
    pd->registered = false;
  }
  {
    lock_guard hold(pd->mutex);
    pd->fd = -1;
  }
  lock_guard hold(pool.mutex);
  pd->next = pool.free;
  pool.free = pd;
}

poll_status poll_check(const poll_desc* pd, poll_mode m) noexcept {
  std::uint32_t info = pd->info.load(seq_cst);
  if (info & poll_desc::closing) return poll_status::closing;
  std::uint32_t passed = m == poll_mode::read ? poll_desc::read_passed : poll_desc::write_passed;
  return info & passed ? poll_status::timed_out : poll_status::ok;
}

poll_status poll_reset(poll_desc* pd, poll_mode m) noexcept {
  poll_status s = poll_check(pd, m);
  if (s != poll_status::ok) return s;
  poll_desc::direction& d = pd->at(m);
  // seq_cst: "drained" (api/src/net/receive.hpp).
  if (d.word.load(relaxed) == poll_desc::ready) d.word.store(poll_desc::nil, seq_cst);
  return poll_status::ok;
}

bool poll_prepare_wait(poll_desc* pd, poll_mode m) noexcept {
  poll_desc::direction& d = pd->at(m);
  for (;;) {
    std::uintptr_t old = d.word.load(relaxed);
    // acquire at least: what made it ready happened before. seq_cst: "drained" (api/src/net/receive.hpp).
    if (old == poll_desc::ready && d.word.compare_exchange_strong(old, poll_desc::nil, seq_cst, relaxed)) return false;
    if (old == poll_desc::nil && d.word.compare_exchange_strong(old, poll_desc::wait, seq_cst, relaxed)) break;
    WEFT_ASSERT(old <= poll_desc::ready, "two goroutines wait for fd {} in one direction", pd->fd);
  }
  // The word says `wait`. Only now look whether the descriptor was closed, or a deadline passed, too early for the
  // other side to see it.
  if (poll_check(pd, m) == poll_status::ok) return true;
  poll_finish_wait(pd, m);
  return false;
}

bool poll_commit(poll_desc* pd, poll_mode m, G* g) noexcept {
  std::uintptr_t want = poll_desc::wait;
  // release: the thread that takes the G sees its saved stack.
  return pd->at(m).word.compare_exchange_strong(want, reinterpret_cast<std::uintptr_t>(g), acq_rel, relaxed);
}

G* poll_try_again(poll_desc* pd, poll_mode m) noexcept { return unblock(pd->at(m), poll_desc::ready); }

void poll_finish_wait(poll_desc* pd, poll_mode m) noexcept {
  std::uintptr_t old = pd->at(m).word.exchange(poll_desc::nil, seq_cst);  // "drained" (api/src/net/receive.hpp)
  WEFT_ASSERT(old <= poll_desc::wait, "a goroutine still sleeps on fd {}", pd->fd);
}

deadline_result poll_set_deadline(timer_heap& here, poll_desc* pd, poll_mode m, nanos deadline, g_list& woken) {
  lock_guard hold(pd->mutex);
  if (is_closing(pd)) return {};
  poll_desc::direction& d = pd->at(m);
  deadline_result r;
  // The timer comes first, since arming it may throw. If it fires at once, its function waits for the lock.
  if (deadline > 0) {
    r = {arm(here, pd, m, deadline), deadline};
  } else {
    if (d.passing) del_timer(d.passing, nullptr);
    ++d.seq;
  }
  d.deadline.store(deadline, relaxed);
  publish(pd, false);
  if (deadline < 0) {
    if (G* g = unblock(d, poll_desc::nil)) woken.push_back(g);
  }
  return r;
}

void poll_event(poll_desc* pd, std::uint32_t tag, poll_news news, g_list& woken) noexcept {
  if (pd->tag() != tag) return;  // an event of an earlier use
  // Stored before the word is looked at ("drained", api/src/net/receive.hpp). If the descriptor is given a new use at
  // this moment, the mark costs the new use a superfluous try now and then.
  if (WEFT_UNLIKELY(news.special)) pd->special.store(true, seq_cst);
  if (news.readable) {
    if (G* g = unblock(pd->read, poll_desc::ready)) woken.push_back(g);
  }
  if (news.writable) {
    if (G* g = unblock(pd->write, poll_desc::ready)) woken.push_back(g);
  }
}

}  // namespace weft::rt
