#include "runtime/deadline_clock.hpp"

#include <cstdio>
#include <cstring>

namespace weft::rt {

namespace {

// True if the kernel derives its clock from the counter that cpu_ticks reads. It does so if it has found that the
// counter runs at one rate, and alike on all processors.
bool clock_follows_ticks() noexcept {
  char name[32] = {};
  if (std::FILE* f = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re")) {
    if (!std::fgets(name, sizeof name, f)) name[0] = 0;
    std::fclose(f);
  }
  return std::strcmp(name, "tsc\n") == 0 || std::strcmp(name, "arch_sys_counter\n") == 0;
}

clock_look surely_look(nanos patience) noexcept {
  const nanos since = nanotime();
  for (;;) {
    const clock_look l = look_at_clock();
    if (l.is_sure() || l.clock - since > patience) return l;
  }
}

}  // namespace

void measure_ticks() noexcept {
  static bool done = false;
  if (done) return;
  done = true;
  tick_rate& rate = cpu_tick_rate;
  rate.look = UINT64_MAX / 2;
  for (int i = 0; i < 100; ++i) rate.look = std::min(rate.look, look_at_clock().took);
  constexpr nanos time = 200 * microsecond;
  constexpr nanos patience = 10 * millisecond;
  const clock_look begin = surely_look(patience);
  clock_look end;
  do {
    end = surely_look(patience);
  } while (end.clock - begin.clock < time);
  const auto took = static_cast<std::uint64_t>(end.clock - begin.clock);
  rate.per_us = std::max<std::uint64_t>((end.count - begin.count) * microsecond / took, 1);
  rate.ns_shifted = (std::uint64_t{1000} << 32) / rate.per_us + 1;
  if (clock_follows_ticks() && begin.is_sure() && end.is_sure()) rate.span = rate.per_us;  // a microsecond
}

}  // namespace weft::rt
