// The state of a task: who waits for it, and its result behind it in the same block.
//
// `done` is set under the lock after the result is written and the closure destroyed; waiters are woken after the lock
// is released. The goroutine's last access is that release, unless the handle has left the task to it (`detached`,
// under the lock): then it frees the state. Else the handle does, when the task is done and the lock is free: nobody
// will take it any more. So nobody counts references. What is not done when its run() is over is freed by nobody.

#include "weft/task.hpp"

#include "api/src/end_waiters.hpp"
#include "api/src/goroutine.hpp"
#include "api/src/support.hpp"
#include "sched/park.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>

namespace weft::detail {

class task_state {
 public:
  rt::goroutine_lock mutex{rt::lock_rank::sync};
  rt::atomic<bool> done{false};
  bool has_value = false;
  bool detached = false;  // under mutex: the goroutine frees it
  std::uint64_t id = 0;
  std::uint64_t run = 0;  // which run() it belongs to
  end_waiters waiters;    // under mutex
  std::exception_ptr exception;
  std::unique_ptr<rt::G> thrown_by;  // the goroutine's id, name and start; null: there was no memory
  void (*destroy)(void*) noexcept = nullptr;
  void* result = nullptr;
  std::size_t align = 0;
  std::size_t size = 0;  // with the result
};

namespace {

// The run() that a task belongs to is over: it will never be done by itself.
bool run_is_over(const task_state* t) noexcept { return number_of_run() != t->run; }

}  // namespace

task_state* task_make(std::size_t size, std::size_t align, void (*destroy)(void*) noexcept) {
  if (align < alignof(task_state)) align = alignof(task_state);
  std::size_t offset = (sizeof(task_state) + align - 1) / align * align;
  auto* room = static_cast<std::byte*>(take_room(offset + size, align));
  auto* t = ::new (room) task_state;
  t->result = room + offset;
  t->destroy = destroy;
  t->align = align;
  t->size = offset + size;
  return t;
}

namespace {

void destroy_state(task_state* t) noexcept {
  if (t->has_value && t->destroy) t->destroy(t->result);
  std::size_t align = t->align;
  std::size_t size = t->size;
  t->~task_state();
  give_room_back(t, size, align);
}

// The slow way: the goroutine is about to release the lock. Or, false, the task is not done, as its run() is over: its
// goroutine was left behind, and may still run.
WEFT_NOINLINE bool wait_for_release(task_state* t) noexcept {
  rt::runtime_scope scope;
  rt::lock_guard hold(t->mutex);
  return t->done.load(rt::relaxed);
}

}  // namespace

void task_drop(task_state* t) noexcept {
  const bool let_go = t->done.load(rt::acquire) && t->mutex.is_free();
  if (WEFT_LIKELY(let_go) || wait_for_release(t)) destroy_state(t);
}

void* task_result(task_state* t) noexcept { return t->result; }

void task_set_id(task_state* t, std::uint64_t id) noexcept {
  t->id = id;
  t->run = run_of_last_start();
}

std::uint64_t task_id(const task_state* t) noexcept { return t->id; }
bool task_done(const task_state* t) noexcept { return t->done.load(rt::acquire) || run_is_over(t); }

namespace {

// A goroutine: until t is done. True, so that task_wait ends with it.
WEFT_NOINLINE bool wait_for_end(task_state* t) {
  return rt::wait_in_step([=] {
    rt::runtime_scope scope;
    t->mutex.acquire_lock();
    if (t->done.load(rt::relaxed) || run_is_over(t)) {
      t->mutex.release_lock();
      return true;
    }
    end_waiter w{scope.g(), rt::no_ticket};
    t->waiters.add(&w);
    scope.resumed_on(rt::park(scope.m(), t->mutex, rt::wait_reason::task_join));
    return true;
  });
}

// False: the time passed.
bool wait_until(task_state* t, rt::nanos deadline) {
  rt::runtime_scope scope;
  t->mutex.acquire_lock();
  if (t->done.load(rt::relaxed) || run_is_over(t)) {
    t->mutex.release_lock();
    return true;
  }
  end_waiter w{scope.g(), scope.g()->begin_wait()};
  t->waiters.add(&w);
  bool timed_out = false;
  try {
    scope.resumed_on(rt::park_until(scope.m(), w.ticket, t->mutex, rt::wait_reason::task_join, deadline, &timed_out));
  } catch (...) {
    t->waiters.remove(&w);
    t->mutex.release_lock();
    throw;
  }
  if (!timed_out) return true;
  rt::lock_guard hold(t->mutex);
  t->waiters.remove(&w);
  return t->done.load(rt::relaxed);
}

WEFT_NOINLINE bool wait_for(task_state* t, std::int64_t timeout) {
  if (rt::this_m()) return wait_until(t, deadline_after(timeout));
  return try_in_turns(
      timeout, [=](std::int64_t ns) { return wait_until(t, deadline_after(ns)); }, [](bool over) { return over; });
}

}  // namespace

bool task_wait(task_state* t, std::int64_t timeout) {
  if (t->done.load(rt::acquire)) return true;
  if (timeout <= 0) return run_is_over(t);
  if (timeout < never_ns || !rt::this_m()) return wait_for(t, timeout);
  return wait_for_end(t);
}

void task_rethrow(task_state* t) {
  const bool done = t->done.load(rt::acquire);  // else it may be written just now
  if (done && t->exception) std::rethrow_exception(t->exception);
  if (!done || !t->has_value) throw goroutine_exited("weft::task: the goroutine ended itself, or its run() was over");
}

void task_detach(task_state* t) noexcept {
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(t->mutex);
    if (!t->done.load(rt::relaxed)) {
      t->detached = true;
      return;
    }
  }
  if (std::exception_ptr unseen = t->exception) {
    rt::G unknown;
    unknown.id = t->id;
    die_of_exception(unseen, t->thrown_by ? t->thrown_by.get() : &unknown);
  }
  destroy_state(t);
}

void task_promise::set_value() noexcept { state_->has_value = true; }

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

bool task_promise::must_rethrow() noexcept { return is_goroutine_exit(std::current_exception()); }

std::uint64_t current_run() noexcept { return number_of_run(); }

std::uint64_t run_of_last_start() noexcept {
  return rt::this_m() ? rt::sched.run_number.load(rt::relaxed) : rt::this_thread()->g->run;
}

bool is_goroutine_exit(std::exception_ptr e) noexcept {
  try {
    std::rethrow_exception(std::move(e));
  } catch (const goroutine_exit&) {
    return true;
  } catch (...) {
    return false;
  }
}

void task_promise::finish(task_state* t) noexcept {
  bool alone;
  {
    rt::runtime_scope scope;
    end_waiter* woken;
    {
      rt::lock_guard hold(t->mutex);
      // release: whoever sees done without the lock sees the result.
      t->done.store(true, rt::release);
      woken = t->waiters.claim_all();
      alone = t->detached;
    }
    end_waiters::ready_all(scope.m(), woken);
    if (alone && t->exception) die_of_exception(t->exception);
  }
  if (alone) destroy_state(t);
}

}  // namespace weft::detail
