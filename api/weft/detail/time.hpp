// Converts durations and time points of any kind to nanoseconds. The conversion saturates: what is too long to fit
// never comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace weft {

using time_point = std::chrono::steady_clock::time_point;

namespace detail {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

// Rounds up, so that nothing wakes early.
template <class Rep, class Period>
constexpr std::int64_t to_ns(const std::chrono::duration<Rep, Period>& d) noexcept {
  using namespace std::chrono;
  // First in floating point, since the conversion of, say, hours::max() would overflow. 9.2e18 ns is 292 years.
  const double rough = duration<double, std::nano>(d).count();
  if (!(rough < 9.2e18)) return never_ns;  // NaN too
  if (rough < -9.2e18) return -never_ns;
  if constexpr (std::is_floating_point_v<Rep>) {
    return static_cast<std::int64_t>(rough) + (rough > static_cast<double>(static_cast<std::int64_t>(rough)) ? 1 : 0);
  } else if constexpr (std::is_integral_v<Rep>) {
    // 128 bits: where the period is an odd fraction of a second, the product overflows long before the nanoseconds do.
    __extension__ typedef __int128 wide;
    using unit = std::ratio_divide<Period, std::nano>;
    const wide product = static_cast<wide>(d.count()) * unit::num;
    return static_cast<std::int64_t>(product / unit::den + (product % unit::den > 0 ? 1 : 0));
  } else {
    return ceil<nanoseconds>(d).count();
  }
}

template <class Duration>
constexpr std::int64_t to_ns(const std::chrono::time_point<std::chrono::steady_clock, Duration>& t) noexcept {
  return t == (std::chrono::time_point<std::chrono::steady_clock, Duration>::max)() ? never_ns
                                                                                    : to_ns(t.time_since_epoch());
}

// A duration that converts from any other one, for data members. A plain std::chrono::nanoseconds could overflow.
class any_duration : public std::chrono::nanoseconds {
 public:
  constexpr any_duration() noexcept : duration(0) {}
  template <class Rep, class Period>
  constexpr any_duration(const std::chrono::duration<Rep, Period>& d) noexcept : duration(to_ns(d)) {}
};

// A point of the steady clock that converts from any precision: a parameter for functions that are not templates.
class any_point {
 public:
  constexpr any_point() noexcept = default;  // the clock's epoch, as time_point()
  template <class Duration>
  constexpr any_point(const std::chrono::time_point<std::chrono::steady_clock, Duration>& t) noexcept : ns_(to_ns(t)) {}
  constexpr std::int64_t ns() const noexcept { return ns_; }

 private:
  std::int64_t ns_ = 0;
};

}  // namespace detail
}  // namespace weft
