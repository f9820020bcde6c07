// Structured concurrency: a group of goroutines that are waited for together.
//
//   weft::task_group g;
//   for (auto& url : urls) g.go([&] { fetch(url, g.context()); });
//   g.wait();   // throws the first exception, after the others were told to stop (g.context()) and have ended
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

WEFT_API std::uint64_t current_run() noexcept;    // 0: no runtime is running
WEFT_API bool handles_goroutine_exit() noexcept;  // called in a handler: is it for what exit_goroutine() throws?

[[noreturn]] inline void throw_run_is_over() {
  throw std::logic_error("weft::task_group::go: the run() of its goroutines is over");
}

// The state of a group. It outlives the task_group if a run() that is over has left goroutines behind, which refer to
// it.
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

  // Called before a goroutine is counted. Throws if an earlier run() has left goroutines of the group behind: the group
  // would never be done.
  void enter_run(std::uint64_t now) {
    if (run.load(std::memory_order_relaxed) == now) return;
    std::scoped_lock hold(mutex);
    if (run.load(std::memory_order_relaxed) == now) return;
    if (!running.wait_for(std::chrono::nanoseconds(0))) throw_run_is_over();
    run.store(now, std::memory_order_relaxed);
  }

  weft::context ctx;
  cancel_function cancel;
  detail::atomic<std::uint64_t> run{0};  // the run() of its goroutines; 0: there were none
  wait_group running{};
  std::optional<semaphore> places{};  // made by set_limit
  weft::mutex mutex{};
  std::exception_ptr first{};  // under mutex
};

// One place in the group: held from go() until the goroutine has ended and its closure is destroyed.
class group_member {
 public:
  explicit group_member(group_state& s) noexcept : state_(&s) { s.running.add(); }  // called with the place taken
  group_member(group_member&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
  group_member& operator=(group_member&&) = delete;
  ~group_member() {
    if (!state_) return;
    if (state_->places) state_->places->release();
    state_->running.done();  // the last access: the group may be gone afterwards
  }
  group_state& state() const noexcept { return *state_; }

 private:
  group_state* state_;
};

// Members are destroyed in reverse order: first the closure, last the place in the group.
template <class C>
struct group_body {
  template <class... A>
  explicit group_body(group_member&& m, A&&... a) : member(std::move(m)), body(std::in_place, std::forward<A>(a)...) {
    // By now the goroutine belongs to a run(). If a plain thread starts it, that may be a later one than enter_run saw,
    // for which the thread has waited for its place, or one that came and went while no run() went on (0).
    const std::uint64_t now = current_run();
    if (now == 0 || member.state().run.load(std::memory_order_relaxed) != now) throw_run_is_over();
  }
  void operator()() {
    locals.begin();
    try {
      static_cast<void>((*body)());
    } catch (...) {
      if (handles_goroutine_exit()) throw;
      member.state().fail(std::current_exception());
    }
    body.reset();
  }
  group_member member;
  locals_scope locals;
  std::optional<C> body;
};

}  // namespace detail

// A group of goroutines that belong together. The first exception that leaves one of them cancels the group's context
// and comes out of wait(). Anywhere, but apart from the group's own goroutines only one thread at a time may use the
// group.
class task_group {
 public:
  // Makes a group whose context is below `parent`. Throws std::bad_alloc. Only go() needs a running runtime.
  task_group() : task_group(background()) {}
  explicit task_group(const weft::context& parent) : state_(std::make_unique<detail::group_state>(parent)) {}
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  // Cancels the context and waits. An exception that nobody asked for is dropped.
  ~task_group() {
    state_->cancel();
    wait_for_all();
    if (!state_->running.wait_for(std::chrono::nanoseconds(0))) (void)state_.release();  // left behind
  }

  // Returns the context of the group. It is cancelled by the first exception, by its parent, or when the group is
  // destroyed.
  const weft::context& context() const noexcept { return state_->ctx; }

  // Runs f(args...) in a new goroutine of the group. If there is a limit, waits for a place first. What f returns is
  // dropped. Throws std::bad_alloc, and then nothing was started; std::logic_error if no runtime is running, if an
  // earlier run() has left goroutines of the group behind, or if the run() ends meanwhile.
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
  }

  // Waits until all goroutines of the group have ended. Then throws the first exception, if there was one; it is thrown
  // once. The group may be used again; after an exception its context stays cancelled, but go() starts goroutines all
  // the same. Goroutines of a run() that is over count as ended.
  void wait() {
    wait_for_all();
    std::exception_ptr e;
    {
      std::scoped_lock hold(state_->mutex);
      e = std::exchange(state_->first, nullptr);
    }
    if (e) std::rethrow_exception(e);
  }

  // Limits how many goroutines of the group run at once to n. An n beyond semaphore::max() counts as that. Throws
  // std::logic_error while goroutines of the group run, and std::invalid_argument if n is 0.
  void set_limit(std::size_t n) {
    if (n == 0) throw std::invalid_argument("weft::task_group::set_limit: 0");
    if (!state_->running.wait_for(std::chrono::nanoseconds(0))) {
      throw std::logic_error("weft::task_group::set_limit: goroutines of the group are running");
    }
    state_->places.emplace(static_cast<std::ptrdiff_t>(std::min(n, static_cast<std::size_t>(semaphore::max()))));
  }

 private:
  // The goroutines of a run() that is over never end, so the group counts as done then. Nobody is left to wake a thread
  // that waits for them, so such a thread looks again now and then.
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
      if (run_is_over()) detail::throw_run_is_over();
    }
  }

  std::unique_ptr<detail::group_state> state_;
};

}  // namespace weft
