// Time: sleeping, timers and tickers. A wake-up never comes early. On a machine with a free processor it is late by
// some microseconds in the median; sleep() says what happens when many goroutines sleep at a time.
//
// Durations that are too long to fit never fire; zero and negative ones fire at once. While no runtime is running, the
// calls that start a timer throw std::logic_error. All members of a moved-from timer or ticker throw it, too; a
// moved-from func_timer is empty. If there is no memory for a timer, std::bad_alloc comes from the call that starts
// one, from a goroutine's sleep, and from a receive that waits for a timer's channel.
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
WEFT_API void timer_release(timer_core* t) noexcept;  // the last release stops the timer
WEFT_API chan_core* timer_chan(timer_core* t) noexcept;
WEFT_API bool timer_stop(timer_core* t);
WEFT_API bool timer_reset(timer_core* t, std::int64_t ns, std::int64_t period_ns);
WEFT_API chan_core* after_chan(std::int64_t ns);

class func_timer_core;

// The function of an after_func. It is allocated with room for the timer in front of it: one allocation for both.
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
// `size` and `align` are those with which the closure was allocated.
WEFT_API func_timer_core* func_timer_make(std::int64_t ns, std::unique_ptr<func_timer_closure> f, std::size_t size,
                                          std::size_t align);
WEFT_API void func_timer_retain(func_timer_core* t) noexcept;
WEFT_API void func_timer_release(func_timer_core* t) noexcept;  // does not stop the timer
WEFT_API bool func_timer_stop(func_timer_core* t);
WEFT_API bool func_timer_stop_and_wait(func_timer_core* t);
WEFT_API bool func_timer_reset(func_timer_core* t, std::int64_t ns);

// A reference-counting handle.
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
  explicit operator bool() const noexcept { return core_ != nullptr; }
  Core* get() const {
    if (!core_) throw std::logic_error("weft: use of an empty or moved-from timer");
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

// Waits for d, never less. If d is zero or negative, returns at once. Where many goroutines begin to sleep at about the
// same time, they wake together: late by at most d/8, up to 0.53 ms, or, if that is more, by at most d/128, up to 1.05
// ms. Anywhere.
template <class Rep, class Period>
void sleep(const std::chrono::duration<Rep, Period>& d) {
  detail::sleep_ns(detail::to_ns(d));
}

// Waits until tp. If tp has passed, returns at once. Anywhere.
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& tp) {
  detail::sleep_until_ns(detail::to_ns(tp));
}

// Returns a channel that receives a value once, d from now: the instant that was due. Only the runtime sends on it.
// Anywhere.
template <class Rep, class Period>
chan<time_point> after(const std::chrono::duration<Rep, Period>& d) {
  return chan<time_point>::adopt(detail::after_chan(detail::to_ns(d)));
}

// A timer sends one value on its channel when it is due: the instant that was due. A `timer` is a handle: copies share
// the timer, which stops when the last handle is destroyed. A copy of the channel is not a handle. Anywhere.
class timer {
 public:
  template <class Rep, class Period>
  explicit timer(const std::chrono::duration<Rep, Period>& d) : core_(detail::timer_make(detail::to_ns(d), 0)) {}

  // Returns the channel that the timer sends on. Its size and capacity are always 0. Nothing closes it: a receiver that
  // waits when the timer is stopped waits on.
  recv_chan<time_point> channel() const& {
    detail::chan_core* c = detail::timer_chan(core_.get());
    detail::chan_retain(c);
    return recv_chan<time_point>::adopt(c);
  }
  recv_chan<time_point> channel() const&& = delete;  // the temporary would stop the timer

  // Stops the timer. Returns true if the value had not been received yet. Once stop() has returned, no value of the
  // earlier setting is ever received.
  bool stop() const { return detail::timer_stop(core_.get()); }

  // Starts the timer anew for d from now. Returns true if the value of the earlier setting had not been received; it
  // never will be. If it throws std::bad_alloc, a receiver that waits for the channel waits until the next reset().
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& d) const {
    return detail::timer_reset(core_.get(), detail::to_ns(d), 0);
  }

 private:
  detail::counted<detail::timer_core, detail::timer_retain, detail::timer_release> core_;
};

// A ticker sends the instant that was due on its channel, every period. A slow receiver misses ticks: at most one is
// pending. The ticks stay on a grid, which does not drift. A `ticker` is a handle, as `timer` is. Anywhere.
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

  // Stops the ticker: no tick is received afterwards. Does not close the channel. Returns true if it was running.
  bool stop() const { return detail::timer_stop(core_.get()); }

  // Starts the ticker anew; the first tick comes one period from now. Returns true if it was running. std::bad_alloc:
  // as with timer. If the period is not positive, it throws std::invalid_argument and changes nothing.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& period) const {
    std::int64_t ns = detail::positive_period(period);
    return detail::timer_reset(core_.get(), ns, ns);
  }

 private:
  explicit ticker(std::int64_t ns) : core_(detail::timer_make(ns, ns)) {}
  detail::counted<detail::timer_core, detail::timer_retain, detail::timer_release> core_;
};

// A call that after_func has scheduled. A `func_timer` is a handle: copies share the call. Dropping the last handle
// does not cancel it. An empty handle has no call; reset() then throws std::logic_error, and the others return false.
// Anywhere.
class func_timer {
 public:
  func_timer() noexcept = default;  // empty
  explicit func_timer(detail::func_timer_core* adopted) noexcept : core_(adopted) {}

  // Cancels the call, and does not wait for a running f. Returns true if the present setting had not started f; it
  // never will.
  bool stop() const { return core_ && detail::func_timer_stop(core_.get()); }

  // Does what stop() does, and then waits for a running f. Meanwhile a reset() by f itself does nothing. If f itself
  // calls this, it does not wait. Two functions that call this for each other's timers wait for ever.
  bool stop_and_wait() const { return core_ && detail::func_timer_stop_and_wait(core_.get()); }

  // Calls f (again) d from now, instead of at the earlier time. Returns true if the earlier call was still pending. If
  // it throws std::bad_alloc, the timer is stopped.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& d) const {
    return detail::func_timer_reset(core_.get(), detail::to_ns(d));
  }

 private:
  detail::counted<detail::func_timer_core, detail::func_timer_retain, detail::func_timer_release> core_;
};

// Runs f, d from now, in a goroutine of its own. An exception that leaves f ends the process, as with go(). Anywhere.
//
// f is destroyed when nothing can call it any more: by the thread that drops the last handle, if the timer was stopped
// or f has run, or by the goroutine that called f. A call that is pending when run() ends is not made any more. f is
// destroyed then, unless a handle is left. In that case stop() and reset() still find the call pending, and reset()
// arms it anew. If the timer has fired by then, its goroutine is left behind like any other, begun or not, and so is f.
//
// Always inlined, so that func_timer_make's return address lies in the caller: for reports, the goroutine was started
// there.
template <class Rep, class Period, class F>
[[gnu::always_inline]] inline func_timer after_func(const std::chrono::duration<Rep, Period>& d, F&& f) {
  using D = std::decay_t<F>;
  static_assert(std::is_invocable_v<D&>, "after_func(d, f): f takes no arguments");
  struct holder final : detail::func_timer_closure {
    explicit holder(F&& g) : held(std::forward<F>(g)) {}
    void call() override { static_cast<void>(std::invoke(held)); }
    D held;
  };
  constexpr std::size_t align = std::max(alignof(holder), detail::func_timer_closure::least_align);
  // In place of std::make_unique: where f's copy throws, compilers free no room that was allocated for an alignment.
  void* room = holder::operator new (sizeof(holder), std::align_val_t{align});
  std::unique_ptr<holder> made;
  try {
    made.reset(::new (room) holder(std::forward<F>(f)));
  } catch (...) {
    holder::operator delete (room, sizeof(holder), std::align_val_t{align});
    throw;
  }
  return func_timer(detail::func_timer_make(detail::to_ns(d), std::move(made), sizeof(holder), align));
}

}  // namespace weft
