#include "sched/latency.hpp"

#include <algorithm>
#include <bit>

namespace weft::rt {

WEFT_NOINLINE void start_timing(G* g) noexcept {
  // Release, for a dump: a thread that takes this stamp for the time at which a wait began, and reads the state after
  // that, sees that the wait is over.
  g->wait_since.store(static_cast<nanos>(cpu_ticks()), release);
  g->set_mark(mark::timed);
}

WEFT_NOINLINE void count_latency(P* p, G* g) noexcept {
  if (!(g->marks() & mark::timed)) return;
  g->clear_mark(mark::timed);
  // The counters of two processors may differ a little.
  const nanos passed = std::max<nanos>(static_cast<nanos>(cpu_ticks()) - g->wait_since.load(relaxed), 0);
  auto ns = static_cast<std::uint64_t>(passed) * 1000 / cpu_tick_rate.per_us;
  std::size_t bucket = ns == 0 ? 0 : static_cast<std::size_t>(std::bit_width(ns)) - 1;
  p->count.latency[std::min(bucket, p->count.latency.size() - 1)].add();
}

}  // namespace weft::rt
