// call_once: calls a function once for each flag, by the first caller. As std::call_once.
//
// The other callers wait until that call has returned. If the function throws, or ends its goroutine by
// exit_goroutine(), the exception comes out of that call_once and the flag stays unset; one of the callers that wait,
// or the next one that comes, then calls its own function. A function that calls call_once with its own flag waits for
// itself, for ever. Anywhere.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <cstdint>
#include <functional>
#include <utility>

namespace weft {

class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);

  static constexpr std::uint32_t unset = 0, running = 1, running_with_waiters = 2, set = 3;

  // acquire: the caller sees what the function did.
  bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == set; }

  // True: it is the caller's turn to call its function, and the caller must call end(). False: the flag was set
  // meanwhile.
  WEFT_API bool begin();
  WEFT_API void end(bool done) noexcept;

  // Not inlined, so that the common case, a flag that is set, stays short.
  template <class F, class... Args>
  [[gnu::noinline]] void call(F&& f, Args&&... args) {
    struct turn {
      once_flag& flag;
      bool done = false;
      ~turn() { flag.end(done); }
    };
    if (!begin()) return;
    turn t{*this};
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    t.done = true;
  }

  detail::atomic<std::uint32_t> word_{unset};
  detail::sync_queue queue_{};
};

template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  if (!flag.is_set()) [[unlikely]]
    flag.call(std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace weft
