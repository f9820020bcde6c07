// wait_group: waits until a number of things are done.
//
//   weft::wait_group wg;
//   for (auto& part : parts) wg.go([&] { work(part); });
//   wg.wait();
//
// The counter starts at zero. A counter below zero is fatal. When the counter reaches zero, all that wait at that
// moment return, and the group can be used again at once. It may be destroyed as soon as wait() has returned: the
// done() that made it return does not touch it any more. All members: anywhere.
#pragma once

#include <weft/detail/countdown.hpp>
#include <weft/go.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft {

class wait_group {
 public:
  constexpr wait_group() noexcept : count_(0) {}

  // Adds n, which may be negative, to the counter. If the counter is zero, the add must happen before the wait() that
  // is meant to wait for it.
  void add(std::ptrdiff_t n = 1) noexcept {
    if (!count_.add(n)) [[unlikely]]
      misuse(n);
  }
  void done() noexcept { add(-1); }

  // Waits until the counter is zero. The caller then sees what was done before each done().
  void wait() { count_.wait(detail::never_ns, detail::countdown_of::wait_group); }

  // As wait(), but for at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no memory for
  // the timer.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& d) {
    return count_.wait(detail::deadline_in(d), detail::countdown_of::wait_group);
  }
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& tp) {
    return detail::wait_until_point(tp,
                                    [&](std::int64_t t) { return count_.wait(t, detail::countdown_of::wait_group); });
  }

  // Adds 1 and runs f(args...) in a new goroutine. done() is called when the goroutine has ended and its closure is
  // destroyed, also if it ends by exit_goroutine(). Otherwise as weft::go(). A goroutine that cannot be started is not
  // counted.
  template <class F, class... Args>
    requires detail::startable<F, Args...>
  void go(F&& f, Args&&... args) { go(go_options{}, std::forward<F>(f), std::forward<Args>(args)...); }
  template <class F, class... Args>
    requires detail::startable<F, Args...>
  void go(const go_options& o, F&& f, Args&&... args) {
    using C = detail::closure<std::decay_t<F>, std::decay_t<Args>...>;
    detail::start<member<C>>(o, "wait_group::go", this, std::forward<F>(f), std::forward<Args>(args)...);
  }

 private:
  struct share {
    explicit share(wait_group* g) noexcept : group(g) { group->add(1); }
    share(const share&) = delete;
    share& operator=(const share&) = delete;
    ~share() { group->done(); }
    wait_group* group;
  };

  // Members are destroyed in reverse order: first the closure, last the share, which calls done().
  template <class C>
  struct member {
    template <class... A>
    explicit member(wait_group* g, A&&... a) : counted(g), body(std::forward<A>(a)...) {}
    void operator()() {
      locals.begin();
      static_cast<void>(body());
    }
    share counted;
    detail::locals_scope locals;
    C body;
  };

  [[noreturn]] WEFT_API void misuse(std::ptrdiff_t n) const noexcept;

  detail::countdown count_;
};

}  // namespace weft
