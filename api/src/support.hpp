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

// For answers that are given without entering the runtime: a goroutine that only asks, and asks again, has to enter
// when there is a request for its thread. It gives way there, and stops at the end of its run().
inline bool runtime_has_request() noexcept {
  const rt::M* m = rt::this_m();
  return m && m->requests.load(rt::relaxed) != 0;
}
inline void answer_runtime_request() {
  if (runtime_has_request()) rt::runtime_scope scope;
}

// operator new and delete, by the aligned ones only where that is needed: they take thrice as long.
inline void* allocate_aligned(std::size_t size, std::size_t align) {
  if (align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(size);
  return ::operator new (size, std::align_val_t{align});
}
inline void free_aligned(void* block, std::size_t align) noexcept {
  if (align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator delete(block);
  ::operator delete (block, std::align_val_t{align});
}

// The same, from a block if one is large enough (blocks.hpp).
inline void* take_room(std::size_t size, std::size_t align) {
  return rt::fits_block(size, align) ? rt::block_take(size) : allocate_aligned(size, align);
}
inline void give_room_back(void* room, std::size_t size, std::size_t align) noexcept {
  rt::fits_block(size, align) ? rt::block_put(room, size) : free_aligned(room, align);
}

// `d` ns from now, by the clock itself; rt::forever if that is too far.
inline rt::nanos clock_after(std::int64_t d) noexcept {
  return d >= detail::never_ns ? rt::forever : rt::saturating_add(rt::nanotime(), d);
}

// The same by a cheaper clock, for deadlines that rarely expire. Whoever looks at the clock takes it for past from `at`
// on; whoever is woken for it is woken when it is `due`, so that by no clock it comes early (deadline_clock.hpp).
struct instant {
  rt::nanos at;
  rt::nanos slack;

  rt::nanos due() const noexcept { return rt::saturating_add(at, slack); }
};
inline instant instant_after(std::int64_t d) noexcept {
  rt::M* m = rt::this_m();
  // What is due at once is due by any clock.
  if (!m || d <= 0 || d >= detail::never_ns) return {clock_after(d), 0};
  return {rt::saturating_add(m->clock.now(), d), rt::deadline_clock::slack};
}
inline rt::nanos deadline_after(std::int64_t d) noexcept { return instant_after(d).due(); }

// Until a deadline; rt::forever: there is none. Points long before now and rt::forever are in its range.
inline rt::nanos time_until(rt::nanos deadline) noexcept {
  if (deadline == rt::forever) return rt::forever;
  return deadline < 0 ? -1 : deadline - rt::nanotime();
}

// 0: no runtime is running.
inline std::uint64_t number_of_run() noexcept {
  return rt::sched.running.load(rt::acquire) ? rt::sched.run_number.load(rt::relaxed) : 0;
}

// try_for(ns) again and again, each for no longer than `piece`, until it has a result or `timeout` has passed.
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
