#include "sysmon/gate.hpp"

#include "runtime/fatal.hpp"
#include "sched/proc.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace weft::rt {

namespace {

// Threads that compute without a P, for each P. They share the processors with the Ms: beside six of them on each, an
// M that needs the processor for 100 µs has used up its share for the next 0.6 ms.
constexpr std::uint32_t hogs_per_p = 6;
// From as many on, the others wait like suspects after one of them that computes.
constexpr std::uint32_t most_hogs_per_p = 2 * hogs_per_p;
// For how long they wait after one more that computes: longer each time.
constexpr nanos longest_wait = second;
// While the threads run short.
constexpr nanos look_for_threads = 10 * millisecond;

bool too_many_compute(std::uint32_t per_p) noexcept {
  return sched.hogs.load(relaxed) >= per_p * sched.procs.load(relaxed);
}

// Nearly all threads that may be are held; the last ones are for what has begun.
bool threads_run_short() noexcept {
  lock_guard hold(sched.mutex);
  std::uint32_t limit = sched.options.max_threads;
  std::uint32_t reserve = std::min(2 * sched.procs.load(relaxed) + 8, limit / 8);
  return sched.live_ms - sched.idle_ms + reserve > limit;
}

}  // namespace

bool gate::shall_open() const noexcept { return closed_ && newcomers_aside() != 0; }

void gate::look(nanos now, bool took, bool hog_had_turn, bool surprise) noexcept {
  keeps_turn_ |= hog_had_turn;
  if (!closed_ && !took) return;
  bool no_threads = threads_run_short();
  if (!too_many_compute(hogs_per_p) && !no_threads) {
    if (closed_) open();
    return;
  }
  if (!closed_) warn();
  closed_ = true;
  make_newcomers_wait();
  if (hog_had_turn) {
    make_wait(now + wait_, surprise && too_many_compute(most_hogs_per_p));
    wait_ = std::min(2 * wait_, longest_wait);
  } else if (no_threads) {
    make_wait(std::max(wait_until_, now + look_for_threads), true);
  } else if (now >= wait_until_) {
    let_begin();
  }
}

void gate::make_wait(nanos until, bool everybody) noexcept {
  wait_until_ = until;
  make_suspects_wait();
  if (everybody && !keeps_turn_) keeps_turn_ = withhold_turn();
  if (!everybody && std::exchange(keeps_turn_, false)) give_turn_back();
}

void gate::let_begin() noexcept {
  let_suspects_begin();
  if (std::exchange(keeps_turn_, false)) give_turn_back();
}

void gate::open() noexcept {
  closed_ = false;
  wait_ = first_wait;
  let_newcomers_begin();
  let_begin();
}

void gate::warn() noexcept {
  if (std::exchange(warned_, true)) return;
  char text[256];
  auto r = fmt::format_to_n(text, sizeof text,
                            "weft: warning: {} goroutines compute or block on threads of their own, {} of them "
                            "compute; new goroutines begin slowly until some come back.\n",
                            sched.detached_ms.load(relaxed), sched.hogs.load(relaxed));
  print_error({text, std::min(r.size, sizeof text)});
}

}  // namespace weft::rt
