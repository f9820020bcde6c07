// Structured concurrency: a group of goroutines that are waited for together.
//
//   weft::task_group g;
//   for (auto& url : urls) g.go([&] { fetch(url, g.context()); });
//   g.wait();   // throws the first exception, after the others were told to stop and have ended
#pragma once

#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/config.hpp>
#include <weft/go.hpp>
#include <weft/sync.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace weft {

namespace this_goroutine {
WEFT_API std::uint64_t id() noexcept;  // task.hpp
}

namespace detail {

WEFT_API std::uint64_t current_run() noexcept;                 // 0: no runtime is running
WEFT_API std::uint64_t run_of_last_start() noexcept;           // in which the goroutine is that the caller started last
WEFT_API bool is_goroutine_exit(std::exception_ptr) noexcept;  // what exit_goroutine() throws

// Outlives the task_group if goroutines of a run() that is over are left behind: these refer to it.
struct group_state {
  explicit group_state(const context& parent) : group_state(with_cancel(parent)) {}
  explicit group_state(cancellable c) : ctx(c.ctx), cancel(std::move(c.cancel)) {}

  void fail(std::exception_ptr e) noexcept {
    {
      std::scoped_lock hold(mutex);
      if (first) return;
      first = e;
    }
    cancel(std::move(e));
  }

  // Before each goroutine. None may be left behind by an earlier run(): the group would never be done.
  void enter_run(std::uint64_t now) {
    if (run.load(std::memory_order_relaxed) == now) return;
    std::scoped_lock hold(mutex);
    if (run.load(std::memory_order_relaxed) == now) return;
    if (!running.wait_for(std::chrono::nanoseconds(0))) {
      throw std::logic_error("weft::task_group::go: the run() of its goroutines is over");
    }
    run.store(now, std::memory_order_relaxed);
  }

  // After it was started: a plain thread's may be of a later run() than the one before. wait() must wait for it.
  void note_run(std::uint64_t started_in) noexcept {
    if (run.load(std::memory_order_relaxed) != started_in) run.store(started_in, std::memory_order_relaxed);
  }

  weft::context ctx;
  cancel_function cancel;
  detail::atomic<std::uint64_t> run{0};  // of its goroutines; 0: there were none
  wait_group running{};
  std::optional<semaphore> places{};  // set_limit
  weft::mutex mutex{};
  std::exception_ptr first{};  // under mutex
};

// One place in the group: held from go() until the goroutine has ended and its closure is destroyed.
class group_member {
 public:
  explicit group_member(group_state& s) : state_(&s) { state_->running.add(); }
  group_member(group_member&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
  group_member& operator=(group_member&&) = delete;
  ~group_member() {
    if (!state_) return;
    if (state_->places) state_->places->release();
    state_->running.done();  // the last access: the group may be gone
  }
  group_state& state() const noexcept { return *state_; }

 private:
  group_state* state_;
};

// Members are destroyed in reverse order: first the closure, at last the place.
template <class C>
struct group_body {
  template <class... A>
  explicit group_body(group_member&& m, A&&... a) : member(std::move(m)), body(std::in_place, std::forward<A>(a)...) {}
  void operator()() {
    locals.begin();
    try {
      (*body)();
    } catch (...) {
      std::exception_ptr e = std::current_exception();
      if (is_goroutine_exit(e)) throw;
      member.state().fail(std::move(e));
    }
    body.reset();
  }
  group_member member;
  locals_scope locals;
  std::optional<C> body;
};

}  // namespace detail

// Goroutines that belong together. The first exception of one of them cancels the group's context and comes out of
// wait(). Anywhere, but the group itself is used by one thread at a time, its own goroutines excepted.
class task_group {
 public:
  // Throws std::bad_alloc. Needs a running runtime only for go().
  task_group() : task_group(background()) {}
  explicit task_group(const weft::context& parent) : state_(std::make_unique<detail::group_state>(parent)) {}
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  // Cancels the context and waits. An exception nobody asked for is dropped.
  ~task_group() {
    state_->cancel();
    wait_for_all();
    if (!state_->running.wait_for(std::chrono::nanoseconds(0))) (void)state_.release();  // left behind
  }

  // The context of the group: cancelled by the first exception, by the parent, or when the group is destroyed.
  const weft::context& context() const noexcept { return state_->ctx; }

  // Runs f(args...) in a new goroutine of the group; waits for a place first if there is a limit. What f returns is
  // dropped. std::bad_alloc: nothing was started. std::logic_error: no runtime is running, or an earlier run() left
  // goroutines of the group behind.
  template <class F, class... Args>
    requires detail::startable<F, Args...>
  void go(F&& f, Args&&... args) { go(go_options{}, std::forward<F>(f), std::forward<Args>(args)...); }
  template <class F, class... Args>
    requires detail::startable<F, Args...>
  void go(const go_options& o, F&& f, Args&&... args) {
    using C = detail::closure<std::decay_t<F>, std::decay_t<Args>...>;
    state_->enter_run(detail::current_run());
    if (state_->places) take_place();
    detail::start<detail::group_body<C>>(o, "task_group::go", detail::group_member(*state_), std::forward<F>(f),
                                         std::forward<Args>(args)...);
    state_->note_run(detail::run_of_last_start());
    started_.store(true, std::memory_order_relaxed);
  }

  // Waits until all have ended, then throws the first exception, once. The group may be used again, but its context
  // stays cancelled after an exception, and go() does not ask it. Goroutines of a run() that is over count as ended.
  void wait() {
    wait_for_all();
    std::exception_ptr e;
    {
      std::scoped_lock hold(state_->mutex);
      e = std::exchange(state_->first, nullptr);
    }
    if (e) std::rethrow_exception(e);
  }

  // At most n of the goroutines run at once, or all if n is beyond what a semaphore counts; before the first go(). 0:
  // std::invalid_argument; later: std::logic_error.
  void set_limit(std::size_t n) {
    if (n == 0) throw std::invalid_argument("weft::task_group::set_limit: 0");
    if (started_.load(std::memory_order_relaxed)) {
      throw std::logic_error("weft::task_group::set_limit: goroutines of the group were started already");
    }
    state_->places.emplace(static_cast<std::ptrdiff_t>(std::min(n, static_cast<std::size_t>(semaphore::max()))));
  }

 private:
  // The goroutines of a run() that is over never end: the group counts as done. Nobody is left to say so to a thread
  // that waits, so it looks again now and then.
  static constexpr std::chrono::milliseconds look_again{20};
  bool run_is_over() const noexcept { return state_->run.load(std::memory_order_relaxed) != detail::current_run(); }

  void wait_for_all() {
    while (!run_is_over()) {
      if (this_goroutine::id() != 0) return state_->running.wait();
      if (state_->running.wait_for(look_again)) return;
    }
  }

  void take_place() {
    if (this_goroutine::id() != 0) return state_->places->acquire();
    while (!state_->places->try_acquire_for(look_again)) {
      if (run_is_over()) throw std::logic_error("weft::task_group::go: the run() of its goroutines is over");
    }
  }

  std::unique_ptr<detail::group_state> state_;
  detail::atomic<bool> started_{false};  // a go() has succeeded
};

}  // namespace weft
