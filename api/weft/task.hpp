// Tasks: goroutines whose end and result can be waited for. Also what a goroutine knows about itself, and variables
// that each goroutine has its own of.
#pragma once

#include <weft/detail/time.hpp>
#include <weft/go.hpp>

#include <chrono>
#include <concepts>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace weft {

// Thrown by join() if the task ended itself by exit_goroutine(), or was left behind when its run() ended.
class WEFT_API goroutine_exited : public std::runtime_error {
 public:
  explicit goroutine_exited(const char* what) : std::runtime_error(what) {}
};

template <class R>
class task;

namespace detail {

// The state that a task's handle and its goroutine share: a block of memory with the result behind it.
class task_state;

// What a task must have room for.
struct task_type {
  std::size_t body_size, body_align;  // the goroutine's closure
  std::size_t result_size, result_align;
  void (*destroy)(void* result) noexcept;  // null: there is nothing to destroy
};

// Begins a task's goroutine, as spawn_begin does for go().
WEFT_API new_goroutine task_begin(const go_options& o, const task_type& type, task_state** made);
WEFT_API void task_drop(task_state* t) noexcept;     // called by the handle, after it has waited
WEFT_API void* task_result(task_state* t) noexcept;  // the result, or the room for it
WEFT_API std::uint64_t task_id(const task_state* t) noexcept;
WEFT_API bool task_done(const task_state* t) noexcept;
WEFT_API void task_wait(task_state* t);            // until the task is done
WEFT_API bool task_wait_for_value(task_state* t);  // false: there is no value; task_rethrow throws the reason
WEFT_API bool task_wait_for(task_state* t, std::int64_t timeout_ns);  // false: the time passed
[[noreturn]] WEFT_API void task_rethrow(task_state* t);

// Held by the running goroutine, and destroyed after its closure. The destructor destroys the goroutine's local<T>s and
// makes the task done.
class task_promise {
 public:
  explicit task_promise(task_state* t) noexcept : state_(t) {}
  task_promise(task_promise&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
  task_promise(const task_promise&) = delete;
  task_promise& operator=(const task_promise&) = delete;
  ~task_promise() {
    if (state_) finish(state_, begun_, has_value_);
  }
  task_state* state() const noexcept { return state_; }
  void begin() noexcept { begun_ = true; }  // called by the goroutine itself, which may never begin
  void set_value() noexcept { has_value_ = true; }
  WEFT_API void set_exception(std::exception_ptr e) noexcept;
  // Called while an exception is handled. True: the exception must be rethrown (exit_goroutine).
  WEFT_API static bool must_rethrow() noexcept;

 private:
  WEFT_API static void finish(task_state* t, bool begun, bool has_value) noexcept;
  task_state* state_;
  bool begun_ = false, has_value_ = false;
};

template <class R>
using stored_result = std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, R>;

// Members are destroyed in reverse order: first the closure, then the promise.
template <class R, class C>
struct task_body {
  template <class... A>
  explicit task_body(task_promise&& p, A&&... a) : promise(std::move(p)), body(std::in_place, std::forward<A>(a)...) {}
  void operator()() {
    promise.begin();
    try {
      if constexpr (std::is_void_v<R>) {
        (*body)();
      } else if constexpr (std::is_reference_v<R>) {
        auto&& result = (*body)();  // R may be an rvalue reference; std::addressof needs an lvalue
        ::new (task_result(promise.state())) stored_result<R>(std::addressof(result));
      } else {
        ::new (task_result(promise.state())) R((*body)());
      }
      promise.set_value();
    } catch (...) {
      if (task_promise::must_rethrow()) throw;
      promise.set_exception(std::current_exception());
    }
    body.reset();
  }
  task_promise promise;
  std::optional<C> body;
};

template <class R>
void destroy_result(void* at) noexcept {
  using stored = stored_result<R>;
  std::destroy_at(static_cast<stored*>(at));
}
template <class R, class Body>
inline constexpr task_type type_of_task{sizeof(Body), alignof(Body), sizeof(stored_result<R>),
                                        alignof(stored_result<R>), destroy_result<R>};
template <class Body>
inline constexpr task_type type_of_task<void, Body>{sizeof(Body), alignof(Body), 0, 1, nullptr};

template <class R, class Body, class... A>
task<R> start_task(const go_options& o, A&&... args);

}  // namespace detail

// A handle to a goroutine that was started with spawn(). Movable, not copyable. Its members may be called anywhere, but
// a handle may be used by one thread at a time, as with std::jthread. The exception is done(), which any thread may
// call until the handle is joined, detached, moved or destroyed. All members of an empty handle but joinable() throw
// std::logic_error.
template <class R>
class [[nodiscard]] task {
 public:
  task() noexcept = default;
  task(task&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
  // Waits first for the goroutine that this handle had, as the destructor does.
  task& operator=(task&& o) noexcept {
    if (this != &o) {
      finish();
      state_ = std::exchange(o.state_, nullptr);
    }
    return *this;
  }
  // Waits for the goroutine. A result or an exception that nobody asked for is dropped.
  ~task() { finish(); }

  // True if there is a goroutine to wait for.
  bool joinable() const noexcept { return state_ != nullptr; }

  // Waits, and returns the result or rethrows the task's exception; afterwards the handle is empty. Throws
  // goroutine_exited if the task ended by exit_goroutine() or its run() is over. A task that joins itself waits for
  // ever.
  R join() {
    need_state("join");
    const bool has_value = detail::task_wait_for_value(state_);
    holder h{std::exchange(state_, nullptr)};
    if (!has_value) detail::task_rethrow(h.state);
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(**static_cast<detail::stored_result<R>*>(detail::task_result(h.state)));
    } else if constexpr (!std::is_void_v<R>) {
      return std::move(*static_cast<R*>(detail::task_result(h.state)));
    }
  }

  // Waits until the goroutine has ended: its closure is destroyed, and its result is there.
  void wait() const {
    need_state("wait");
    detail::task_wait(state_);
  }

  // As wait(), but for at most d. False: the time passed. Throws std::bad_alloc if there is no memory for the timer.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& d) const {
    need_state("wait_for");
    return detail::task_wait_for(state_, detail::to_ns(d));
  }

  // True if wait() would return at once: the task has ended, or its run() is over.
  bool done() const {
    need_state("done");
    return detail::task_done(state_);
  }

  // Lets the goroutine run on alone, and makes the handle empty. An exception that leaves the goroutine, or has left it
  // already, ends the process, as with go().
  void detach() {
    need_state("detach");
    detach_state();
  }

  // Returns the goroutine's id.
  std::uint64_t id() const {
    need_state("id");
    return detail::task_id(state_);
  }

 private:
  template <class T, class Body, class... A>
  friend task<T> detail::start_task(const go_options& o, A&&... args);

  struct holder {
    detail::task_state* state;
    ~holder() { detail::task_drop(state); }
  };

  explicit task(detail::task_state* s) noexcept : state_(s) {}

  void need_state(const char* what) const {
    if (!state_) throw std::logic_error(std::string("weft::task: ") + what + " of an empty task");
  }

  void finish() noexcept {
    if (!state_) return;
    detail::task_wait_for_value(state_);
    detail::task_drop(std::exchange(state_, nullptr));
  }

  void detach_state() noexcept;

  detail::task_state* state_ = nullptr;
};

namespace detail {
WEFT_API void task_detach(task_state* t) noexcept;
}

template <class R>
void task<R>::detach_state() noexcept {
  detail::task_detach(std::exchange(state_, nullptr));
}

namespace detail {

template <class R, class Body, class... A>
[[gnu::always_inline]] inline task<R> start_task(const go_options& o, A&&... args) {
  task_state* s;
  const new_goroutine g = task_begin(o, type_of_task<R, Body>, &s);
  task<R> t(s);
  task_promise promise(s);  // if the goroutine does not take it over, its destructor makes the task done
  detail::start_in<Body>(g, std::move(promise), std::forward<A>(args)...);
  return t;
}

template <class R, class F, class... A>
[[gnu::always_inline]] inline task<R> spawn_task(const go_options& o, F&& f, A&&... args) {
  using C = closure<std::decay_t<F>, std::decay_t<A>...>;
  using body = task_body<R, C>;
  if constexpr (fits_stack<body>) {
    return detail::start_task<R, body>(o, std::forward<F>(f), std::forward<A>(args)...);
  } else {
    using box = boxed<C>;
    return detail::start_task<R, task_body<R, box>>(o,
                                                    box(std::in_place, std::forward<F>(f), std::forward<A>(args)...));
  }
}

}  // namespace detail

// Runs f(args...) in a new goroutine, and returns a handle to its result. Otherwise as go().
template <class F, class... Args>
  requires detail::startable<F, Args...>
[[gnu::always_inline]] inline auto spawn(F&& f, Args&&... args) {
  using R = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  return detail::spawn_task<R>({}, std::forward<F>(f), std::forward<Args>(args)...);
}
template <class F, class... Args>
  requires detail::startable<F, Args...>
[[gnu::always_inline]] inline auto spawn(const go_options& o, F&& f, Args&&... args) {
  using R = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  return detail::spawn_task<R>(o, std::forward<F>(f), std::forward<Args>(args)...);
}

// The id and the name of the calling goroutine. Anywhere; a thread of the program has id 0 and no name.
namespace this_goroutine {
WEFT_API std::uint64_t id() noexcept;
WEFT_API std::string name();
WEFT_API void set_name(std::string_view name) noexcept;  // as go_options::name
}  // namespace this_goroutine

namespace detail {
WEFT_API void* local_find(const void* key);
WEFT_API void local_insert(const void* key, void* value, void (*destroy)(void*) noexcept);
}  // namespace detail

// A variable of which each goroutine has its own: what thread_local cannot be for goroutines. Must be declared static
// or global. The variable is made by T() on first use in a goroutine. It is destroyed with the goroutine: after the
// closure, and before a task, group or wait group counts the goroutine as done. Goroutine only.
template <class T>
class local {
 public:
  local() = default;
  local(const local&) = delete;
  local& operator=(const local&) = delete;

  T& get() const {
    if (void* p = detail::local_find(this)) return *static_cast<T*>(p);
    auto made = std::make_unique<T>();
    detail::local_insert(this, made.get(), [](void* p) noexcept { delete static_cast<T*>(p); });
    return *made.release();
  }
  T& operator*() const { return get(); }
  T* operator->() const { return std::addressof(get()); }
};

}  // namespace weft

#include <weft/task_group.hpp>
