// The interface of a generation of timers, so that all run the same workloads.
//
//   make     returns a timer that is not armed; its owner calls drop in the end
//   add      arms a timer that is not armed, on behalf of P `p`
//   stop     stops a timer; true: it was armed, and its function will not run
//   reset    arms a timer anew, whether it is armed or not; true: it was armed
//   fire     called by P `p`: runs the due timers that this P has to run. Returns when to call again; 0: no need to
//   drop     the owner gives up the timer; it is stopped or has fired, but the structure may still refer to it
//
// Only one thread at a time calls add, stop and reset of a timer; any number of threads may call them for different
// timers. A P that sleeps is not told when another P gives it an earlier timer: no workload does that.
#pragma once

#include <concepts>

#include "timers/timer.hpp"

namespace generations {

namespace rt = weft::rt;
using rt::nanos;
using timer_function = void (*)(void* arg, std::uint64_t seq, nanos due) noexcept;

template <class T>
concept generation = std::constructible_from<T, unsigned> &&
    requires(T g, typename T::timer* t, unsigned p, nanos when, timer_function function, void* arg) {
  { T::name } -> std::convertible_to<const char*>;
  { T::make(function, arg) } -> std::same_as<typename T::timer*>;
  { g.add(p, t, when) } -> std::same_as<void>;
  { g.stop(t) } -> std::same_as<bool>;
  { g.reset(p, t, when) } -> std::same_as<bool>;
  { g.fire(p, when) } -> std::same_as<nanos>;
  { T::drop(t) } -> std::same_as<void>;
};

}  // namespace generations
