// select, after Go's selectgo.
//
//   1. Lock all channels, in the order of their addresses, so that two selects never wait for each other.
//   2. In random order, look for an operation that can be done at once, and do it.
//   3. Otherwise enqueue a waiter in every channel and park; the commit step unlocks them all. The party that serves
//      one of the waiters claims the goroutine's wake word. A claim through any other of the waiters then fails, and
//      the party that made it drops that waiter.
//   4. Unlink the waiters that are left, each under its channel's lock. The one that was served is unlinked already.
//
// The time limit is one more party that may claim. A channel may stand in several cases; step 1 locks it once.

#include "weft/select.hpp"

#include "api/src/select_workspace.hpp"
#include "api/src/support.hpp"
#include "sched/park.hpp"
#include "weft/time.hpp"

#include <algorithm>

namespace weft::detail {

namespace {

void unlock_channels(rt::G*, void* ws) noexcept { static_cast<workspace*>(ws)->unlock_all(); }

// *receiver or *sender is set to the waiter that was served, if any.
chan_status do_now(const select_op& op, waiter** receiver, waiter** sender) noexcept {
  return op.send ? op.chan->send_now(op.value, receiver) : op.chan->recv_now(op.value, sender);
}

bool would_block(const select_op& op) noexcept {
  return !op.chan || (op.send ? op.chan->send_would_block() : op.chan->recv_would_block());
}

bool receives_from_timer(const select_op& op) noexcept { return !op.send && op.chan && op.chan->timer; }

constexpr select_outcome nothing{select_outcome::none, chan_status::would_block};

select_outcome do_select(const select_op* ops, std::size_t count, std::int64_t timeout) {
  workspace ws(count);
  rt::runtime_scope scope;
  shuffle(ws.order, count, randomness(scope.m()));
  ws.add_locks_of(ops, count);

  ws.lock_all();
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t k = ws.order[i];
    if (!ops[k].chan) continue;
    waiter* receiver = nullptr;
    waiter* sender = nullptr;
    chan_status s = do_now(ops[k], &receiver, &sender);
    if (s == chan_status::would_block) continue;
    ws.unlock_all();
    if (receiver) wake(scope.m(), receiver);
    if (sender) wake_sender(scope.m(), sender);
    return {k, s};
  }
  if (timeout <= 0) {
    ws.unlock_all();
    return nothing;
  }

  std::uint64_t run = 0;  // the run() that sends the timers' values
  try {
    for (std::size_t i = 0; i < count; ++i) {
      if (!receives_from_timer(ops[i])) continue;
      const std::uint64_t in = timer_begin_wait(ops[i].chan);
      if (run == 0) run = in;
    }
  } catch (...) {
    ws.unlock_all();
    throw;
  }
  rt::G* g = scope.g();
  rt::wait_ticket ticket = g->begin_wait();
  // Enqueued in the random order, too: a channel that stands in several cases serves them by their places in its queue.
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t k = ws.order[i];
    if (!ops[k].chan) continue;
    waiter& w = ws.waiters[k];
    w.g = g;
    w.ticket = ticket;
    w.value = ops[k].value;
    w.index = static_cast<std::uint32_t>(k);
    (ops[k].send ? ops[k].chan->senders : ops[k].chan->receivers).push_back(&w);
  }
  auto unlink = [&](std::size_t i) {
    (ops[i].send ? ops[i].chan->senders : ops[i].chan->receivers).remove(&ws.waiters[i]);
  };
  bool timed_out = false;
  // Without a channel there is nothing to unlock, and a commit step would be wrong: a time limit may wake the goroutine
  // before the step has run, and no lock would keep the goroutine from leaving this frame, which the step reads.
  rt::after_switch commit = ws.lock_count == 0 ? nullptr : unlock_channels;
  const bool for_ever = count == 0 && timeout == wait_forever;
  const rt::wait_reason why = for_ever ? rt::wait_reason::select_no_cases : rt::wait_reason::select;
  try {
    if (timeout == wait_forever) {
      scope.resumed_on(rt::park(scope.m(), commit, &ws, why));
    } else if (const rt::nanos deadline = deadline_after(timeout); run != 0) {
      scope.resumed_on(rt::park_until_run_ends(scope.m(), run, ticket, commit, &ws, why, deadline, &timed_out));
    } else {
      scope.resumed_on(rt::park_until(scope.m(), ticket, commit, &ws, why, deadline, &timed_out));
    }
  } catch (...) {
    for (std::size_t i = 0; i < count; ++i) {
      if (ops[i].chan) unlink(i);
    }
    ws.unlock_all();
    throw;
  }
  auto* served = static_cast<waiter*>(timed_out ? nullptr : g->wake_value);
  for (std::size_t i = 0; i < count; ++i) {
    if (!ops[i].chan || &ws.waiters[i] == served) continue;
    rt::lock_guard hold(ops[i].chan->mutex);
    unlink(i);
  }
  if (!served) return nothing;
  return {served->index, served->success ? chan_status::done : chan_status::closed};
}

packed_outcome select_once(const select_op* ops, std::size_t count, std::int64_t timeout) {
  return rt::with_predicted_return([=] { return pack(do_select(ops, count, timeout)); });
}

}  // namespace

packed_outcome chan_select(const select_op* ops, std::size_t count, std::int64_t timeout) {
  if (timeout <= 0) {
    // One case and a default: the common answer is "not ready", and it takes no lock. With several cases that would be
    // wrong: each could be not ready when it is looked at, and yet one of them ready at any time.
    if (count == 1 && would_block(*ops) && !runtime_has_request()) return pack(nothing);
  } else if (!rt::this_m() && std::any_of(ops, ops + count, receives_from_timer)) {
    return try_again_each(
        timeout, foreign_timer_look_again, [=](std::int64_t ns) { return select_once(ops, count, ns); },
        [](packed_outcome r) { return unpack(r).index != select_outcome::none; });
  }
  return select_once(ops, count, timeout);
}

}  // namespace weft::detail
