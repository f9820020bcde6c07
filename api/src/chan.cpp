#include "weft/chan.hpp"

#include "api/src/chan_core.hpp"
#include "api/src/support.hpp"
#include "sched/collisions.hpp"
#include "sched/park.hpp"
#include "weft/time.hpp"

#include <array>
#include <new>
#include <stdexcept>
#include <string>

namespace weft::detail {

namespace {

constexpr std::size_t block_align(const element& e) noexcept {
  return e.align > alignof(chan_core) ? e.align : alignof(chan_core);
}

WEFT_NOINLINE chan_status wait_on_nil(rt::wait_reason why, std::int64_t timeout) {
  if (timeout == wait_forever) {
    rt::runtime_scope scope;
    for (;;) scope.resumed_on(rt::park(scope.m(), nullptr, nullptr, why));
  }
  sleep_ns(timeout);
  return chan_status::would_block;
}

struct operation {
  bool send;
  chan_status (chan_core::*now)(void*, waiter**) noexcept;
  rt::wait_reason why;
};

constexpr operation sending{true, &chan_core::send_now, rt::wait_reason::chan_send};
constexpr operation receiving{false, &chan_core::recv_now, rt::wait_reason::chan_recv};

template <const operation& op>
wait_queue& queue_of(chan_core* c) noexcept {
  return op.send ? c->senders : c->receivers;
}

// Wakes the goroutine that this operation has served.
template <const operation& op>
void wake_other_side(rt::M* m, waiter* w) noexcept {
  op.send ? wake(m, w) : wake_sender(m, w);
}

// Makes the waiter of a goroutine that waits in this queue only, without a time limit. It lies in the goroutine's
// header.
waiter* make_waiter(rt::G* g) noexcept {
  static_assert(sizeof(waiter) <= sizeof g->wait_node);
  auto* w = ::new (g->wait_node) waiter;
  w->g = g;
  w->ticket = rt::no_ticket;
  return w;
}

// Waits for the other side, without a time limit. Called inside the runtime and under c's lock; releases the lock and
// leaves the runtime.
WEFT_NOINLINE chan_status wait(rt::M* m, chan_core* c, wait_queue& q, void* value, rt::wait_reason why) {
  return rt::with_predicted_return(m, [&](rt::M*& on) {
    waiter* w = make_waiter(rt::current_g(on));
    w->value = value;
    q.push_back(w);
    on = rt::park(on, c->mutex, why);
    return w->success ? chan_status::done : chan_status::closed;
  });
}

// As wait(), but for at most `timeout` ns. If c is a timer's channel, `run` is the number of the run() that sends the
// value; otherwise it is 0.
template <const operation& op>
WEFT_NOINLINE chan_status wait_for(rt::M* m, std::uint64_t run, chan_core* c, void* value, std::int64_t timeout) {
  rt::runtime_scope scope(m);
  waiter w;
  w.g = scope.g();
  w.ticket = w.g->begin_wait();
  w.value = value;
  queue_of<op>(c).push_back(&w);
  bool timed_out = false;
  const rt::nanos deadline = deadline_after(timeout);
  try {
    if (WEFT_UNLIKELY(run != 0)) {
      scope.resumed_on(rt::park_until_run_ends(scope.m(), run, w.ticket, rt::release_after_switch, &c->mutex, op.why,
                                               deadline, &timed_out));
    } else {
      scope.resumed_on(rt::park_until(scope.m(), w.ticket, c->mutex, op.why, deadline, &timed_out));
    }
  } catch (...) {
    queue_of<op>(c).remove(&w);
    c->mutex.release_lock();
    throw;
  }
  if (timed_out) {
    rt::lock_guard hold(c->mutex);
    queue_of<op>(c).remove(&w);
    return chan_status::would_block;
  }
  return w.success ? chan_status::done : chan_status::closed;
}

// Returns the number of the run() that will send the timer's value. If it throws, it has released c's lock and left the
// runtime.
WEFT_NOINLINE std::uint64_t begin_wait_for_timer(rt::M* m, chan_core* c) {
  try {
    return timer_begin_wait(c);
  } catch (...) {
    c->mutex.release_lock();
    rt::leave_runtime(m);
    throw;
  }
}

template <const operation& op>
WEFT_NOINLINE chan_status operate(chan_core* c, void* value, std::int64_t timeout) {
  rt::M* m = rt::enter_runtime();
  waiter* to_wake = nullptr;
  c->mutex.acquire_lock();
  chan_status s = (c->*op.now)(value, &to_wake);
  if (s == chan_status::would_block && timeout > 0) {
    std::uint64_t run = 0;
    if (!op.send && WEFT_UNLIKELY(c->timer != nullptr)) run = begin_wait_for_timer(m, c);
    if (timeout == wait_forever) return wait(m, c, queue_of<op>(c), value, op.why);
    return wait_for<op>(m, run, c, value, timeout);
  }
  c->mutex.release_lock();
  if (m && s == chan_status::done) rt::count_value(m);
  if (to_wake) wake_other_side<op>(m, to_wake);
  rt::leave_runtime(m);
  return s;
}

// --- The fast paths of a goroutine: the operation is done at once, or it waits without a time limit. These functions
// make no call except as their last instruction, and so save no registers (docs/adr/0010-jump-without-a-call.md). If
// something is in the way, operate() starts over.

template <const operation& op>
WEFT_NOINLINE chan_status wake_and_leave(rt::M* m, waiter* w) noexcept {
  wake_other_side<op>(m, w);
  rt::leave_runtime(m);
  return chan_status::done;
}

// Called under the lock.
template <const operation& op>
WEFT_NOINLINE chan_status retry_slow(rt::M* m, chan_core* c, void* value, std::int64_t timeout) {
  c->mutex.release_lock();
  rt::leave_runtime(m);
  return operate<op>(c, value, timeout);
}

// Called when another thread holds the lock.
template <const operation& op>
WEFT_NOINLINE chan_status collide(rt::M* m, chan_core* c, void* value, std::int64_t timeout) {
  rt::count_collision(m);
  rt::leave_runtime(m);
  return operate<op>(c, value, timeout);
}

// Called after the operation, when another thread sleeps waiting for the lock.
template <const operation& op>
WEFT_NOINLINE chan_status wake_both_and_leave(rt::M* m, chan_core* c, waiter* w) noexcept {
  c->mutex.wake_sleeper();
  if (w) wake_other_side<op>(m, w);
  rt::leave_runtime(m);
  return chan_status::done;
}

// A guess, made without the lock.
template <const operation& op>
bool looks_ready(const chan_core* c) noexcept {
  return op.send ? c->looks_ready_to_send() : c->looks_ready_to_recv();
}

// Called under the lock, after the operation. `served` is the waiter that it has served, if any.
template <const operation& op>
[[gnu::always_inline]] inline chan_status unlock_and_leave(rt::M* m, chan_core* c, waiter* served) noexcept {
  bool lock_wanted = c->mutex.give_back();
  rt::count_value(m);
  if (WEFT_UNLIKELY(lock_wanted)) return wake_both_and_leave<op>(m, c, served);
  if (served) return wake_and_leave<op>(m, served);
  rt::leave_to_user_code(m);
  return chan_status::done;
}

// Called under the lock: serves w, the first waiter on the other side. A function of its own, so that the use of the
// buffer saves no registers for this.
template <const operation& op>
WEFT_NOINLINE chan_status serve_word(rt::M* m, chan_core* c, void* value, std::int64_t timeout, waiter* w) {
  const bool done = op.send ? c->send_word_to(w, value) : c->recv_word_from(w, value);
  if (!done) return retry_slow<op>(m, c, value, timeout);
  return unlock_and_leave<op>(m, c, w);
}

// For values that are words. The operation is done at once in the frequent cases: a waiter on the other side is served;
// or nobody waits, and the buffer has room (send) or a value (receive). In other cases, the result is what
// otherwise(m) returns, which is called under the lock.
template <const operation& op, class Otherwise>
[[gnu::always_inline]] inline chan_status operate_on_word(chan_core* c, void* value, std::int64_t timeout,
                                                          Otherwise otherwise) {
  rt::M* m = rt::enter_from_user_code();
  if (WEFT_UNLIKELY(!m)) return operate<op>(c, value, timeout);
  if (WEFT_UNLIKELY(!c->mutex.try_acquire_lock())) return collide<op>(m, c, value, timeout);
  waiter* first = nullptr;
  if (op.send ? c->send_word(value, &first) : c->recv_word(value, &first)) return unlock_and_leave<op>(m, c, nullptr);
  if (first) return serve_word<op>(m, c, value, timeout, first);
  return otherwise(m);
}

// Called under the lock, when the operation could not be done at once.
template <const operation& op>
[[gnu::always_inline]] inline chan_status wait_unless_ready(rt::M* m, chan_core* c, void* value) {
  if (WEFT_UNLIKELY(looks_ready<op>(c) || c->closed.load(rt::relaxed))) {
    return retry_slow<op>(m, c, value, wait_forever);
  }
  return wait(m, c, queue_of<op>(c), value, op.why);
}

WEFT_NOINLINE chan_status recv_from_timer(chan_core* c, void* out, std::int64_t timeout) {
  if (timeout <= 0 || rt::this_m()) return operate<receiving>(c, out, timeout);
  return try_again_each(
      timeout, foreign_timer_look_again, [=](std::int64_t ns) { return operate<receiving>(c, out, ns); },
      [](chan_status s) { return s != chan_status::would_block; });
}

// For values that are not words, and those of timers.
template <const operation& op>
WEFT_NOINLINE chan_status operate_on_object(chan_core* c, void* value) {
  if (!op.send && c->timer) return recv_from_timer(c, value, wait_forever);
  if (looks_ready<op>(c)) return operate<op>(c, value, wait_forever);
  rt::M* m = rt::try_enter_runtime();
  if (WEFT_UNLIKELY(!m)) return operate<op>(c, value, wait_forever);
  if (WEFT_UNLIKELY(!c->mutex.try_acquire_lock())) return collide<op>(m, c, value, wait_forever);
  return wait_unless_ready<op>(m, c, value);
}

// Without a time limit.
template <const operation& op>
[[gnu::always_inline]] inline chan_status operate_fast(chan_core* c, void* value) {
  if (WEFT_UNLIKELY(!c->words)) return operate_on_object<op>(c, value);
  return operate_on_word<op>(c, value, wait_forever, [=](rt::M* m) { return wait_unless_ready<op>(m, c, value); });
}

// With a time limit, or without waiting.
template <const operation& op>
[[gnu::always_inline]] inline chan_status operate_fast_for(chan_core* c, void* value, std::int64_t timeout) {
  if (!c->words || !looks_ready<op>(c)) return operate<op>(c, value, timeout);
  return operate_on_word<op>(c, value, timeout, [=](rt::M* m) { return retry_slow<op>(m, c, value, timeout); });
}

}  // namespace

chan_core* chan_make(const element& e, std::size_t capacity) {
  std::size_t align = block_align(e);
  std::size_t stride = e.size;
  std::size_t offset = (sizeof(chan_core) + align - 1) / align * align;
  if (stride != 0 && capacity > (PTRDIFF_MAX - offset) / stride) {
    throw std::length_error("weft::chan: a buffer for " + std::to_string(capacity) + " values is too large");
  }
  auto* block = static_cast<std::byte*>(allocate_aligned(offset + capacity * stride, align));
  return ::new (block) chan_core(e, capacity, stride, block + offset);
}

void chan_retain(chan_core* c) noexcept { c->references.fetch_add(1, rt::relaxed); }

void chan_release(chan_core* c) noexcept {
  // acq_rel: everything that former holders did with the channel happens before it is destroyed. The holder of the only
  // reference finds that out by a load, without a locked instruction.
  if (c->references.load(rt::acquire) != 1 && c->references.fetch_sub(1, rt::acq_rel) != 1) return;
  if (c->timer) return timer_channel_gone(c);
  for (std::size_t n = c->count.load(rt::relaxed); n > 0; c->drop_head(n--)) {
    // Outside the runtime: a value's destructor may wait, and come back on another M (unlike chan_core::destroy's).
    if (c->elem.destroy) c->elem.destroy(c->slot_at(c->head));
  }
  std::size_t align = block_align(c->elem);
  c->~chan_core();
  free_aligned(c, align);
}

bool chan_send_would_block(const chan_core* c) noexcept {
  return (!c || c->send_would_block()) && !runtime_has_request();
}

chan_status chan_send(chan_core* c, void* value) {
  if (WEFT_UNLIKELY(!c)) return wait_on_nil(rt::wait_reason::chan_send_nil, wait_forever);
  return operate_fast<sending>(c, value);
}

chan_status chan_send(chan_core* c, void* value, std::int64_t timeout) {
  if (WEFT_UNLIKELY(!c)) return wait_on_nil(rt::wait_reason::chan_send_nil, timeout);
  if (timeout <= 0 && chan_send_would_block(c)) return chan_status::would_block;
  if (timeout == wait_forever) return chan_send(c, value);
  return operate_fast_for<sending>(c, value, timeout);
}

chan_status chan_recv(chan_core* c, void* out) {
  if (WEFT_UNLIKELY(!c)) return wait_on_nil(rt::wait_reason::chan_recv_nil, wait_forever);
  return operate_fast<receiving>(c, out);
}

chan_status chan_recv(chan_core* c, void* out, std::int64_t timeout) {
  if (WEFT_UNLIKELY(!c)) return wait_on_nil(rt::wait_reason::chan_recv_nil, timeout);
  if (timeout <= 0 && c->recv_would_block() && !runtime_has_request()) return chan_status::would_block;
  if (timeout == wait_forever) return chan_recv(c, out);
  if (WEFT_UNLIKELY(c->timer != nullptr)) return recv_from_timer(c, out, timeout);
  return operate_fast_for<receiving>(c, out, timeout);
}

void chan_close(chan_core* c) {
  if (!c) throw std::logic_error("weft: close of a nil channel");
  rt::runtime_scope scope;
  c->mutex.acquire_lock();
  if (c->closed.load(rt::relaxed)) {
    c->mutex.release_lock();
    throw_channel_closed("close");
  }
  // seq_cst: see "looks" (chan_core.hpp). A thread that finds the channel closed without taking the lock also sees what
  // was sent before.
  c->closed.store(true, rt::seq_cst);
  // The waiters are woken without the lock. All senders are claimed first, under the lock, so that none of them
  // succeeds from here on.
  waiter* woken = nullptr;
  auto fail = [&](waiter* w) {
    w->success = false;
    w->next = woken;
    woken = w;
  };
  // Only one goroutine can wait at both ends, in a select: two would have met. As in Go, its receive is chosen.
  if (waiter* w = c->senders.looks_empty() ? nullptr : c->receivers.claim_first()) fail(w);
  while (waiter* w = c->senders.claim_first()) fail(w);
  // Receivers are claimed and woken in batches, so that each is still in the cache when it is woken. The lock is
  // released between batches, since no more receivers queue. A receiver that is awake may drop its reference to the
  // channel meanwhile, hence chan_retain.
  chan_retain(c);
  std::array<waiter*, 64> batch;
  for (;;) {
    std::size_t n = 0;
    while (waiter* w = n < batch.size() ? c->receivers.claim_first() : nullptr) {
      w->success = false;
      batch[n++] = w;
    }
    c->mutex.release_lock();
    if (n < batch.size()) {
      for (std::size_t i = 0; i < n; ++i) wake(scope.m(), batch[i]);
      break;
    }
    for (waiter* w : batch) wake_without_prefetch(scope.m(), w);
    c->mutex.acquire_lock();
  }
  while (woken) {
    waiter* w = woken;
    woken = w->next;  // read before wake: afterwards w may be gone
    wake(scope.m(), w);
  }
  chan_release(c);
}

std::size_t chan_size(const chan_core* c) noexcept { return c && !c->timer ? c->count.load(rt::relaxed) : 0; }

std::size_t chan_capacity(const chan_core* c) noexcept { return c && !c->timer ? c->capacity : 0; }

void throw_context_over(std::error_code why, const char* operation) {
  if (why != std::errc::timed_out) throw std::system_error(why, operation);
  throw std::system_error(why, std::string(operation) + ": the context's deadline has passed");
}

void throw_channel_closed(const char* operation) {
  throw channel_closed((std::string("weft: ") + operation + " on a closed channel").c_str());
}

}  // namespace weft::detail
