// go: starts a goroutine.
#pragma once

#include <weft/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft {

// weft::go({.name = "worker", .stack_size = 1 << 20}, f);
struct go_options {
  std::string_view name = {};  // shown in dumps; the first 23 bytes are kept, but no part of a UTF-8 character
  std::size_t stack_size = 0;  // bytes; 0: options::stack_size
};

namespace detail {

// A goroutine that is being made. A small closure lies in the goroutine's header, a larger one (up to 2 KiB) on its own
// stack.
struct new_goroutine {
  void* handle;
  void* closure;
};

WEFT_API new_goroutine spawn_begin(const go_options& o, std::size_t size, std::size_t align, const char* what);
WEFT_API void spawn_abort(new_goroutine g) noexcept;
WEFT_API void spawn_commit(new_goroutine g, void (*entry)(void*)) noexcept;
WEFT_API void end_locals() noexcept;  // destroys the calling goroutine's local<T>s

// Destroys the goroutine's local<T>s. It is declared after the member that announces the goroutine's end, and before
// the closure. Members are destroyed in reverse order: first the closure, then (here) the local<T>s, then the
// announcement.
class locals_scope {
 public:
  locals_scope() noexcept = default;
  locals_scope(const locals_scope&) = delete;
  locals_scope& operator=(const locals_scope&) = delete;
  ~locals_scope() {
    if (begun_) end_locals();
  }
  void begin() noexcept { begun_ = true; }  // called by the goroutine itself, which may never begin

 private:
  bool begun_ = false;
};

// f and its arguments, decay-copied as std::thread does.
template <class F, class... Args>
struct closure {
  template <class G, class... As>
  explicit closure(G&& g, As&&... as) : f(std::forward<G>(g)), args(std::forward<As>(as)...) {}

  decltype(auto) operator()() {
    return std::apply([this](Args&... a) -> decltype(auto) { return std::invoke(std::move(f), std::move(a)...); },
                      args);
  }

  F f;
  std::tuple<Args...> args;
};

// Closures larger than this live on the heap, so that a small stack stays usable.
inline constexpr std::size_t max_closure_on_stack = 2048;

template <class C>
inline constexpr bool fits_stack = sizeof(C) <= max_closure_on_stack && alignof(C) <= 256;

// Constructs C(args...) in g and starts g, which calls C::operator() and then destroys the C.
template <class C, class... A>
[[gnu::always_inline]] inline void start_in(new_goroutine g, A&&... args) {
  if constexpr (std::is_nothrow_constructible_v<C, A...>) {
    ::new (g.closure) C(std::forward<A>(args)...);
  } else {
    try {
      ::new (g.closure) C(std::forward<A>(args)...);
    } catch (...) {
      spawn_abort(g);
      throw;
    }
  }
  spawn_commit(g, [](void* at) {
    struct ender {
      C* c;
      ~ender() { c->~C(); }
    } e{static_cast<C*>(at)};
    static_cast<void>((*e.c)());  // what it returns is dropped
  });
}

// A closure on the heap.
template <class C>
struct boxed {
  template <class... A>
  explicit boxed(std::in_place_t, A&&... args) : c(std::make_unique<C>(std::forward<A>(args)...)) {}
  decltype(auto) operator()() { return (*c)(); }
  std::unique_ptr<C> c;
};

// Starts a goroutine that calls C(args...)() and then destroys the C. Always inlined, so that spawn_begin's return
// address lies in the function that started the goroutine: dumps show that address.
template <class C, class... A>
[[gnu::always_inline]] inline void start(const go_options& o, const char* what, A&&... args) {
  if constexpr (fits_stack<C>) {
    start_in<C>(spawn_begin(o, sizeof(C), alignof(C), what), std::forward<A>(args)...);
  } else {
    start_in<boxed<C>>(spawn_begin(o, sizeof(boxed<C>), alignof(boxed<C>), what), std::in_place,
                       std::forward<A>(args)...);
  }
}

template <class T>
concept decay_copyable = std::is_constructible_v<std::decay_t<T>, T>;
template <class F, class... A>
concept startable =
    decay_copyable<F> &&(decay_copyable<A>&&...) && std::is_invocable_v<std::decay_t<F>, std::decay_t<A>...>;

}  // namespace detail

// Runs f(args...) in a new goroutine. The arguments are decay-copied, as std::thread does. Anywhere, while a runtime is
// running; otherwise it throws std::logic_error. Throws std::bad_alloc if there is no memory for the goroutine; then
// nothing was started. An exception that leaves f ends the process with a report. The closure is destroyed when f has
// returned.
template <class F, class... Args>
  requires detail::startable<F, Args...>
[[gnu::always_inline]] inline void go(F&& f, Args&&... args) {
  using C = detail::closure<std::decay_t<F>, std::decay_t<Args>...>;
  detail::start<C>({}, "go", std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
  requires detail::startable<F, Args...>
[[gnu::always_inline]] inline void go(const go_options& o, F&& f, Args&&... args) {
  using C = detail::closure<std::decay_t<F>, std::decay_t<Args>...>;
  detail::start<C>(o, "go", std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace weft
