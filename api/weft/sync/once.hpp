// call_once: a function that is called once, whoever comes first. As std::call_once.
//
// The others wait until the call has returned. If it throws (or ends its goroutine by exit_goroutine()), the exception
// comes out of that call_once, the flag stays unset, and one of those that wait, or that come then, calls its own
// function. Anywhere. A function that comes back to its own flag waits for itself.
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

  // acquire: sees what the call did.
  bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == set; }

  // True: it is the caller's turn, and it has to end(). False: the flag was set meanwhile.
  WEFT_API bool begin();
  WEFT_API void end(bool done) noexcept;

  // Out of line, for the sake of the look at a flag that is set.
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
