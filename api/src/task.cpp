// The state of a task, and its result behind it in the same block. `progress` says how far the task is:
//
//   done                  the result is there, the closure destroyed
//   waiters, and marks    waiters: the newest of those that wait without a time limit; the others are linked from it.
//                         `timed`: others wait with a time limit, in a list under the lock. `detached`: the goroutine
//                         is to free the state. With none of all that, the word is `running`.
//
// All changes are made by read-modify-write. The goroutine goes from `running` to `done` (F1). If a waiter or a detach
// came before, F1 fails, and the goroutine looks what it was. If F1 came before, the other party finds `done`: a waiter
// that has left its stack, to add itself to the waiters (W), is then readied at once.
//
// A waiter without a time limit stays, and is readied after `done` has replaced it in the word (F2, F3). A waiter with
// a time limit may go away at any time. It does so under the lock, and the last one to go takes `timed` back (T). So if
// the goroutine sees `timed`, it looks again under the lock, and replaces `timed` only there (F3): either the goroutine
// finds `timed` gone, or a waiter that would go finds `done`.
//
// The goroutine's last access is F1, F2 or, after F3, the release of the lock. At F3 somebody waits with a time limit,
// and returns only after it has had the lock or was readied after that. So when nobody waits any more and the task is
// `done`, the state belongs to the handle alone, without a count of references. A goroutine that is left behind because
// its run() is over does none of this (finish), and nobody frees its state.

#include "weft/task.hpp"

#include "api/src/end_waiters.hpp"
#include "api/src/goroutine.hpp"
#include "api/src/support.hpp"
#include "sched/park.hpp"

#include <algorithm>
#include <cxxabi.h>
#include <iterator>
#include <memory>
#include <new>
#include <typeinfo>

namespace weft::detail {

class task_state {
 public:
  explicit task_state(const task_type& made_as) noexcept : type(made_as) {}

  using word = std::uintptr_t;
  static constexpr word running = 0, timed = 1, detached = 2, marks = timed | detached, done = 4;
  static_assert(alignof(end_waiter) > done);
  static end_waiter* waiters_in(word w) noexcept { return reinterpret_cast<end_waiter*>(w & ~marks); }

  // acquire: a thread that sees that it is done sees the result.
  bool is_done() const noexcept { return progress.load(rt::acquire) == done; }

  // Called under the lock. From then on the goroutine takes the lock, too. False: the task is done. acquire: as in
  // is_done; what the waiter wrote is published by the lock.
  bool announce_timed() noexcept {
    word before = progress.load(rt::acquire);
    while (before != done) {
      if (progress.compare_exchange_weak(before, before | timed, rt::acquire, rt::acquire)) return true;
    }
    return false;
  }

  rt::atomic<word> progress{running};
  rt::goroutine_lock mutex{rt::lock_rank::sync};
  bool has_value = false;
  end_waiters timed_waiters;  // under mutex
  std::uint64_t id = 0;
  std::uint64_t run = 0;  // which run() it belongs to
  std::exception_ptr exception;
  std::unique_ptr<rt::G> thrown_by;  // the goroutine's id, name and start; null: there was no memory
  const task_type& type;
};

namespace {

// True if the run() that the task belongs to is over: then the task will never be done by itself.
bool run_is_over(const task_state* t) noexcept { return number_of_run() != t->run; }

// The alignment of state and result together, and the place of the result behind the state.
std::size_t align_of(const task_type& type) noexcept { return std::max(type.result_align, alignof(task_state)); }
std::size_t offset_of_result(const task_type& type) noexcept {
  return (sizeof(task_state) + align_of(type) - 1) & ~(align_of(type) - 1);
}

task_state* make_state(const task_type& type) {
  return ::new (take_room(offset_of_result(type) + type.result_size, align_of(type))) task_state(type);
}

void destroy_state(task_state* t) noexcept {
  const task_type& type = t->type;
  if (t->has_value && type.destroy) type.destroy(task_result(t));
  t->~task_state();
  give_room_back(t, offset_of_result(type) + type.result_size, align_of(type));
}

new_goroutine begun(task_state* t, new_goroutine made) noexcept {
  const auto* g = static_cast<const rt::G*>(made.handle);
  t->id = g->id;
  t->run = rt::this_m() ? rt::sched.run_number.load(rt::relaxed) : g->run;
  return made;
}

WEFT_NOINLINE new_goroutine begin_slow(const go_options& o, task_state* t, const void* start) {
  try {
    return begun(t, begin_goroutine(o, t->type.body_size, t->type.body_align, "spawn", start));
  } catch (...) {
    destroy_state(t);
    throw;
  }
}

}  // namespace

new_goroutine task_begin(const go_options& o, const task_type& type, task_state** made) {
  const void* start = __builtin_return_address(0);
  task_state* t = *made = make_state(type);
  if (rt::G* g = try_begin(o, type.body_size, type.body_align, start)) return begun(t, {g, g->closure});
  return begin_slow(o, t, start);
}

void task_drop(task_state* t) noexcept {
  if (t->is_done()) destroy_state(t);
}

void* task_result(task_state* t) noexcept { return reinterpret_cast<std::byte*>(t) + offset_of_result(t->type); }

std::uint64_t task_id(const task_state* t) noexcept { return t->id; }
bool task_done(const task_state* t) noexcept { return t->is_done() || run_is_over(t); }

namespace {

// A goroutine that joins many tasks, one after the other, is woken by the end of each that it has to wait for, and
// waits for the next at once. So now and then it gives way to everything that is ready, and then finds those tasks
// done.
constexpr std::uint32_t joins_in_a_row = 8;

// Called before each wait of a goroutine. True: it is time to give way.
bool waits_for_many(rt::M* m) noexcept {
  rt::P* p = m->p.load(rt::relaxed);
  const rt::G* last = std::exchange(p->joins.by, m->g);
  p->joins.n = last == m->g ? p->joins.n + 1 : 1;
  return p->joins.n % joins_in_a_row == 0 && !p->runq.ring_empty();
}

struct wait_commit {
  task_state* t;
  end_waiter waiter;
};

void add_or_ready(rt::G* g, void* arg) noexcept {
  auto& [t, waiter] = *static_cast<wait_commit*>(arg);
  // acquire: as in is_done, which g does not ask again. release: the party that readies g sees that g has left its
  // stack.
  task_state::word before = t->progress.load(rt::acquire), after;
  do {
    if (before == task_state::done) return rt::ready(g);
    waiter.next = task_state::waiters_in(before);
    after = reinterpret_cast<task_state::word>(&waiter) | (before & task_state::marks);
  } while (!t->progress.compare_exchange_weak(before, after, rt::release, rt::acquire));  // W
}

// Waits, as a goroutine, until t is done. For the owner of the handle, returns whether there is a value. For another
// caller the state may be gone after it has waited or given way, so it is not touched then.
enum class who : bool { has_handle, another };
template <who Who>
WEFT_NOINLINE bool wait_for_end(task_state* t) {
  return rt::with_predicted_return(rt::enter_runtime(), [=](rt::M*& m) {
    if (Who == who::has_handle && m && WEFT_UNLIKELY(waits_for_many(m))) m = rt::yield_now(m);
    if (!t->is_done() && !run_is_over(t)) {
      wait_commit c{t, {rt::current_g(m), rt::no_ticket}};
      m = rt::park(m, add_or_ready, &c, rt::wait_reason::task_join);
    }
    return Who == who::another || (t->is_done() && t->has_value);
  });
}

// Waits until t is done, or until `deadline`. False: the time has passed.
bool wait_until(task_state* t, rt::nanos deadline) {
  rt::runtime_scope scope;
  t->mutex.acquire_lock();
  if (run_is_over(t) || !t->announce_timed()) {
    t->mutex.release_lock();
    return true;
  }
  end_waiter w{scope.g(), scope.g()->begin_wait()};
  t->timed_waiters.add(&w);
  const auto go_away = [&] {
    t->timed_waiters.remove(&w);
    // relaxed: nothing is handed over.
    if (t->timed_waiters.empty()) t->progress.fetch_and(~task_state::timed, rt::relaxed);  // T
    t->mutex.release_lock();
  };
  bool timed_out = false;
  try {
    scope.resumed_on(rt::park_until(scope.m(), w.ticket, t->mutex, rt::wait_reason::task_join, deadline, &timed_out));
  } catch (...) {
    go_away();
    throw;
  }
  if (!timed_out) return true;
  t->mutex.acquire_lock();
  if (t->is_done()) {
    t->mutex.release_lock();
    return true;
  }
  go_away();
  return false;
}

WEFT_NOINLINE bool wait_for(task_state* t, std::int64_t timeout) {
  if (rt::this_m()) return wait_until(t, deadline_after(timeout));
  return try_again_each(
      timeout, rt::foreign_look_again, [=](std::int64_t ns) { return wait_until(t, deadline_after(ns)); },
      [](bool over) { return over; });
}

}  // namespace

void task_wait(task_state* t) {
  if (t->is_done()) return;
  if (!rt::this_m()) return static_cast<void>(wait_for(t, never_ns));
  wait_for_end<who::another>(t);
}

bool task_wait_for_value(task_state* t) {
  if (t->is_done()) return t->has_value;
  if (rt::this_m()) return wait_for_end<who::has_handle>(t);
  wait_for(t, never_ns);
  return t->is_done() && t->has_value;
}

bool task_wait_for(task_state* t, std::int64_t timeout) {
  if (t->is_done()) return true;
  return timeout <= 0 ? run_is_over(t) : wait_for(t, timeout);
}

void task_rethrow(task_state* t) {
  if (t->is_done() && t->exception) std::rethrow_exception(t->exception);  // not done: it may be being written now
  throw goroutine_exited("weft::task: the goroutine ended itself, or its run() was over");
}

void task_detach(task_state* t) noexcept {
  // release: the party that frees the state sees what was written before. acquire: as in is_done.
  if (t->progress.fetch_or(task_state::detached, rt::acq_rel) != task_state::done) return;
  if (std::exception_ptr unseen = t->exception) {
    rt::G unknown;
    unknown.id = t->id;
    die_of_exception(unseen, t->thrown_by ? t->thrown_by.get() : &unknown);
  }
  destroy_state(t);
}

void task_promise::set_exception(std::exception_ptr e) noexcept {
  state_->exception = std::move(e);
  const rt::G* g = rt::this_thread()->g;
  state_->thrown_by.reset(new (std::nothrow) rt::G);
  if (rt::G* who = state_->thrown_by.get()) {
    who->id = g->id;
    who->spawn_pc = g->spawn_pc;
    std::copy(std::begin(g->name), std::end(g->name), who->name);
  }
}

bool task_promise::must_rethrow() noexcept { return handles_goroutine_exit(); }

std::uint64_t current_run() noexcept { return number_of_run(); }

// By its type: to throw it once more would cost as much as the first time.
bool handles_goroutine_exit() noexcept {
  // An exception of another language has neither a type nor a pointer that could carry it over.
  if (!std::current_exception())
    rt::fatal("goroutine {}: a task ends with an exception that is not C++'s", rt::this_thread()->g->id);
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type && *type == typeid(goroutine_exit);
}

namespace {

// Returns whether the task was detached.
WEFT_NOINLINE bool finish_slow(task_state* t) noexcept {
  rt::runtime_scope scope;
  end_waiter* timed = nullptr;
  task_state::word before;
  for (;;) {
    before = t->progress.load(rt::relaxed);
    // release: as in F1. acquire: sees what the waiters, or the party that detached the task, did before.
    if (before & task_state::timed) {
      rt::lock_guard hold(t->mutex);
      if (!(t->progress.load(rt::relaxed) & task_state::timed)) continue;
      before = t->progress.exchange(task_state::done, rt::acq_rel);  // F3
      timed = t->timed_waiters.claim_all();
      break;
    }
    if (t->progress.compare_exchange_weak(before, task_state::done, rt::acq_rel, rt::relaxed)) break;  // F2
  }
  end_waiters::ready_all(scope.m(), timed);
  for (end_waiter* w = task_state::waiters_in(before); w;) {
    rt::G* g = std::exchange(w, w->next)->g;
    if (g->claim(rt::no_ticket)) rt::ready(scope.m(), g);
  }
  return before & task_state::detached;
}

}  // namespace

void task_promise::finish(task_state* t, bool begun, bool has_value) noexcept {
  if (begun) end_locals();
  t->has_value = has_value;
  // Not if there is a request for this thread: a goroutine that is left behind sleeps for good where it enters the
  // runtime. release: a thread that sees that it is done sees the result.
  task_state::word before = t->progress.load(rt::relaxed);
  if (before == task_state::running && !runtime_has_request() &&
      t->progress.compare_exchange_strong(before, task_state::done, rt::release, rt::relaxed)) {  // F1
    return;
  }
  if (!finish_slow(t)) return;
  if (t->exception) die_of_exception(t->exception);
  destroy_state(t);
}

}  // namespace weft::detail
