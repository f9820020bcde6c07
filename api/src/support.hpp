// Small things that the sources of the public API share.
#pragma once

#include "sched/blocks.hpp"
#include "sched/enter.hpp"
#include "weft/detail/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace weft {

// For calls that answer without entering the runtime. A goroutine that does nothing but ask again and again must still
// enter when there is a request for its thread: there it gives way, and there it stops at the end of its run().
inline bool runtime_has_request() noexcept {
  const rt::M* m = rt::this_m();
  return m && m->requests.load(rt::relaxed) != 0;
}
inline void answer_runtime_request() {
  if (runtime_has_request()) rt::runtime_scope scope;
}

// operator new and delete. The aligned ones are used only where that is needed: they take three times as long.
inline void* allocate_aligned(std::size_t size, std::size_t align) {
  if (align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(size);
  return ::operator new (size, std::align_val_t{align});
}
inline void free_aligned(void* block, std::size_t align) noexcept {
  if (align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator delete(block);
  ::operator delete (block, std::align_val_t{align});
}

// The same, from a block if the size fits one (blocks.hpp).
inline void* take_room(std::size_t size, std::size_t align) {
  return rt::fits_block(size, align) ? rt::block_take(size) : allocate_aligned(size, align);
}
inline void give_room_back(void* room, std::size_t size, std::size_t align) noexcept {
  rt::fits_block(size, align) ? rt::block_put(room, size) : free_aligned(room, align);
}

// Returns the time `d` ns from now, by the clock itself; rt::forever if that is too far away.
inline rt::nanos clock_after(std::int64_t d) noexcept {
  return d >= detail::never_ns ? rt::forever : rt::saturating_add(rt::nanotime(), d);
}

// The same by a cheaper clock, for deadlines that rarely expire. To a caller that looks at the clock, the deadline has
// passed from `at` on. A wake-up for the deadline happens when it is `due`, so that it is early by no clock
// (deadline_clock.hpp).
struct instant {
  rt::nanos at;
  rt::nanos slack;

  rt::nanos due() const noexcept { return rt::saturating_add(at, slack); }
};
inline instant instant_after(std::int64_t d) noexcept {
  rt::M* m = rt::this_m();
  // A deadline that is due at once must be due by any clock, so it gets no slack.
  if (!m || d <= 0 || d >= detail::never_ns) return {clock_after(d), 0};
  return {rt::saturating_add(m->clock.now(), d), rt::deadline_clock::slack};
}
inline rt::nanos deadline_after(std::int64_t d) noexcept { return instant_after(d).due(); }

// Returns the time left until `deadline`; rt::forever if there is none (rt::forever). A deadline may be any value, also
// one long before now.
inline rt::nanos time_until(rt::nanos deadline) noexcept {
  if (deadline == rt::forever) return rt::forever;
  return deadline < 0 ? -1 : deadline - rt::nanotime();
}

// Returns the number of the present run(), or 0 if no runtime is running.
inline std::uint64_t number_of_run() noexcept {
  return rt::sched.running.load(rt::acquire) ? rt::sched.run_number.load(rt::relaxed) : 0;
}

// Calls try_for(ns) again and again, each time for no longer than `piece`, until it has a result or `timeout` has
// passed.
template <class TryFor, class HasResult>
auto try_again_each(std::int64_t timeout, rt::nanos piece, TryFor try_for, HasResult has_result) {
  const rt::nanos deadline = deadline_after(timeout);
  for (;;) {
    rt::nanos left = time_until(deadline);
    auto r = try_for(std::min(left, piece));
    if (has_result(r) || left <= 0) return r;
  }
}

}  // namespace weft
