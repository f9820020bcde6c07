// Time: sleeping, timers and tickers. A wake-up never comes early; on a machine with a free
// processor it is late by some microseconds in the median. Many sleepers at a time: sleep().
//
// Durations too long to fit never fire; zero and negative ones fire at once. With no runtime running, what starts a
// timer throws std::logic_error; so do all members of a moved-from timer, ticker or func_timer. No memory for a timer:
// std::bad_alloc, from what starts one, from a goroutine's sleep and from a receive that waits for the channel of one.
#pragma once

#include <weft/chan.hpp>
#include <weft/detail/time.hpp>
#include <weft/go.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {
WEFT_API void sleep_ns(std::int64_t ns);
WEFT_API void sleep_until_ns(std::int64_t deadline);

class timer_core;
WEFT_API timer_core* timer_make(std::int64_t ns, std::int64_t period_ns);
WEFT_API void timer_retain(timer_core* t) noexcept;
WEFT_API void timer_release(timer_core* t) noexcept;  // the last one stops it
WEFT_API chan_core* timer_chan(timer_core* t) noexcept;
WEFT_API bool timer_stop(timer_core* t);
WEFT_API bool timer_reset(timer_core* t, std::int64_t ns, std::int64_t period_ns);
WEFT_API chan_core* after_chan(std::int64_t ns);

class func_timer_core;

// What an after_func calls. It is allocated with room for the timer in front of it: one allocation for both.
struct WEFT_API func_timer_closure {
  virtual ~func_timer_closure() = default;
  virtual void call() = 0;
  static constexpr std::size_t least_align = 16;
  static void* operator new(std::size_t size) { return operator new (size, std::align_val_t{least_align}); }
  static void* operator new(std::size_t size, std::align_val_t align);
  static void operator delete(void* closure, std::size_t size) noexcept {
    operator delete (closure, size, std::align_val_t{least_align});
  }
  static void operator delete(void* closure, std::size_t size, std::align_val_t align) noexcept;
};
// `size`, `align`: with which the closure was allocated.
WEFT_API func_timer_core* func_timer_make(std::int64_t ns, std::unique_ptr<func_timer_closure> f, std::size_t size,
                                          std::size_t align);
WEFT_API void func_timer_retain(func_timer_core* t) noexcept;
WEFT_API void func_timer_release(func_timer_core* t) noexcept;  // does not stop it
WEFT_API bool func_timer_stop(func_timer_core* t);
WEFT_API bool func_timer_stop_and_wait(func_timer_core* t);
WEFT_API bool func_timer_reset(func_timer_core* t, std::int64_t ns);

// A counted handle.
template <class Core, void (*Retain)(Core*) noexcept, void (*Release)(Core*) noexcept>
class counted {
 public:
  counted() noexcept = default;
  explicit counted(Core* adopted) noexcept : core_(adopted) {}
  counted(const counted& o) noexcept : core_(o.core_) {
    if (core_) Retain(core_);
  }
  counted(counted&& o) noexcept : core_(std::exchange(o.core_, nullptr)) {}
  counted& operator=(counted o) noexcept {
    std::swap(core_, o.core_);
    return *this;
  }
  ~counted() {
    if (core_) Release(core_);
  }
  Core* get() const {
    if (!core_) throw std::logic_error("weft: use of a moved-from timer");
    return core_;
  }

 private:
  Core* core_ = nullptr;
};

template <class Rep, class Period>
std::int64_t positive_period(const std::chrono::duration<Rep, Period>& p) {
  std::int64_t ns = to_ns(p);
  if (ns <= 0)
    throw std::invalid_argument("weft::ticker: the period must be positive, not " + std::to_string(ns) + " ns");
  return ns;
}

}  // namespace detail

// Waits for d; zero or negative: returns at once. Never for less. Where many begin to sleep at that time they wake
// together: late by d / 8 and by 0.53 ms at most, or, where that is more, by d / 128 and by 1.05 ms at most. Anywhere.
template <class Rep, class Period>
void sleep(const std::chrono::duration<Rep, Period>& d) {
  detail::sleep_ns(detail::to_ns(d));
}

// Waits until tp; a past point: returns at once. Anywhere.
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& tp) {
  detail::sleep_until_ns(detail::to_ns(tp));
}

// A channel that receives, once, the instant that was due. Only the runtime sends on it. Anywhere.
template <class Rep, class Period>
chan<time_point> after(const std::chrono::duration<Rep, Period>& d) {
  return chan<time_point>::adopt(detail::after_chan(detail::to_ns(d)));
}

// A timer sends the instant that was due on its channel, once. A handle: copies share the timer, and the timer stops
// when the last one goes (a copy of the channel is not a handle). Anywhere.
class timer {
 public:
  template <class Rep, class Period>
  explicit timer(const std::chrono::duration<Rep, Period>& d) : core_(detail::timer_make(detail::to_ns(d), 0)) {}

  // The channel it sends on. Its size and capacity are always 0. Nothing closes it: who waits there when the timer is
  // stopped waits on.
  recv_chan<time_point> channel() const& {
    detail::chan_core* c = detail::timer_chan(core_.get());
    detail::chan_retain(c);
    return recv_chan<time_point>::adopt(c);
  }
  recv_chan<time_point> channel() const&& = delete;  // the temporary would stop the timer

  // True: the value was not received yet, and will not be. Afterwards no value of the earlier setting is received.
  bool stop() const { return detail::timer_stop(core_.get()); }

  // Starts it anew for d from now. True: the value of the earlier setting was not received. std::bad_alloc: who waits
  // for the channel then waits until the next reset().
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& d) const {
    return detail::timer_reset(core_.get(), detail::to_ns(d), 0);
  }

 private:
  detail::counted<detail::timer_core, detail::timer_retain, detail::timer_release> core_;
};

// A ticker sends an instant on its channel every period. A slow receiver misses ticks: at most one is pending. The grid
// does not drift. A handle, as timer is. Anywhere.
class ticker {
 public:
  // Throws std::invalid_argument if the period is not positive.
  template <class Rep, class Period>
  explicit ticker(const std::chrono::duration<Rep, Period>& period) : ticker(detail::positive_period(period)) {}

  recv_chan<time_point> channel() const& {
    detail::chan_core* c = detail::timer_chan(core_.get());
    detail::chan_retain(c);
    return recv_chan<time_point>::adopt(c);
  }
  recv_chan<time_point> channel() const&& = delete;

  // No tick is received afterwards. Does not close the channel. True: it was running.
  bool stop() const { return detail::timer_stop(core_.get()); }

  // Starts it anew; the first tick comes one period from now. True: it was running. std::bad_alloc: as with timer.
  // std::invalid_argument: the period is not positive, and nothing changes.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& period) const {
    std::int64_t ns = detail::positive_period(period);
    return detail::timer_reset(core_.get(), ns, ns);
  }

 private:
  explicit ticker(std::int64_t ns) : core_(detail::timer_make(ns, ns)) {}
  detail::counted<detail::timer_core, detail::timer_retain, detail::timer_release> core_;
};

// A function that is called later. Copies share it; dropping the handle does not cancel it. Anywhere.
class func_timer {
 public:
  explicit func_timer(detail::func_timer_core* adopted) noexcept : core_(adopted) {}

  // True: f was not started by the present setting, and will not be. A running f is not waited for.
  bool stop() const { return detail::func_timer_stop(core_.get()); }

  // The same, and waits for a running f; a reset by f itself does nothing meanwhile. From f itself it does not wait.
  // Two functions that do this to each other's timers wait for ever.
  bool stop_and_wait() const { return detail::func_timer_stop_and_wait(core_.get()); }

  // Calls f (again) d from now. True: it was still pending. std::bad_alloc: it is stopped.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& d) const {
    return detail::func_timer_reset(core_.get(), detail::to_ns(d));
  }

 private:
  detail::counted<detail::func_timer_core, detail::func_timer_retain, detail::func_timer_release> core_;
};

// Runs f, d from now, in a goroutine of its own. An exception that leaves f ends the process, as with go(). Anywhere.
// f is destroyed when nothing can call it any more: by who drops the last handle of one that was stopped or has run,
// or by the goroutine that called it. What is pending when run() ends is not called any more: f is destroyed then,
// unless a handle is left, whose stop() and reset() find it pending still, and whose reset() sets it anew.
template <class Rep, class Period, class F>
func_timer after_func(const std::chrono::duration<Rep, Period>& d, F&& f) {
  using D = std::decay_t<F>;
  static_assert(std::is_invocable_v<D&>, "after_func(d, f): f takes no arguments");
  struct holder final : detail::func_timer_closure {
    explicit holder(F&& g) : held(std::forward<F>(g)) {}
    void call() override { std::invoke(held); }
    D held;
  };
  constexpr std::size_t align = std::max(alignof(holder), detail::func_timer_closure::least_align);
  return func_timer(
      detail::func_timer_make(detail::to_ns(d), std::make_unique<holder>(std::forward<F>(f)), sizeof(holder), align));
}

}  // namespace weft
