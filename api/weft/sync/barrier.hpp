// barrier: a number of participants meet, again and again. The last one to arrive runs the completion and lets all go
// on. As std::barrier.
//
// The completion runs in the goroutine or thread that arrives last, before any other goes on. It must not throw, and
// must not wait for this barrier. More arrivals in a phase than are expected are fatal, and so is a negative number of
// participants. The barrier may be destroyed as soon as all that waited have returned. All members: anywhere.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

struct no_completion {
  void operator()() noexcept {}
};

class barrier_core {
 public:
  constexpr explicit barrier_core(std::ptrdiff_t expected) noexcept : expected_(expected), missing_(expected) {
    if (expected < 0) misuse(expected);
  }
  barrier_core(const barrier_core&) = delete;
  barrier_core& operator=(const barrier_core&) = delete;

  // Arrives n times, and sets *phase to the phase of these arrivals. True: the last one is among them, and the caller
  // must run the completion and then call next_phase(). `drop`: one participant less is expected from the next phase
  // on.
  [[nodiscard]] WEFT_API bool arrive(std::ptrdiff_t n, bool drop, std::uint64_t* phase) noexcept;
  WEFT_API void next_phase() noexcept;

  void wait(std::uint64_t phase) {
    if (phase_.load(std::memory_order_acquire) == phase) wait_slow(phase);
  }

 private:
  WEFT_API void wait_slow(std::uint64_t phase);
  [[noreturn]] WEFT_API void misuse(std::ptrdiff_t expected) const noexcept;

  // Written under the bucket's lock. The store that ends a phase is a release: the waiters see what all participants
  // did before they arrived.
  detail::atomic<std::uint64_t> phase_{0};
  std::ptrdiff_t expected_;
  std::ptrdiff_t missing_;
  sync_queue queue_{};
};

}  // namespace detail

template <class CompletionFunction = detail::no_completion>
class barrier {
  static_assert(std::is_invocable_v<CompletionFunction&>, "weft::barrier: the completion takes no arguments");

 public:
  class arrival_token {
   private:
    friend class barrier;
    explicit arrival_token(std::uint64_t p) noexcept : phase_(p) {}
    std::uint64_t phase_;
  };

  static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX / 2; }

  constexpr explicit barrier(std::ptrdiff_t expected, CompletionFunction f = CompletionFunction())
      : core_(expected), completion_(std::move(f)) {}

  // Arrives n times without waiting.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) { return arrival_token(arrive_as(n, false)); }

  // Waits until the phase in which the token was given out is over.
  void wait(arrival_token&& token) const { core_.wait(token.phase_); }

  void arrive_and_wait() { core_.wait(arrive_as(1, false)); }

  // Arrives once, without waiting. From the next phase on, one participant less is expected.
  void arrive_and_drop() { arrive_as(1, true); }

 private:
  std::uint64_t arrive_as(std::ptrdiff_t n, bool drop) {
    std::uint64_t phase;
    if (core_.arrive(n, drop, &phase)) {
      [this]() noexcept { completion_(); }();
      core_.next_phase();
    }
    return phase;
  }

  mutable detail::barrier_core core_;
  [[no_unique_address]] CompletionFunction completion_;
};

}  // namespace weft
