#include "sysmon/hogs.hpp"

#include "runtime/fatal.hpp"
#include "runtime/report.hpp"
#include "sysmon/thread_state.hpp"

#include <algorithm>
#include <unistd.h>

namespace weft::rt {

void hog_watch::lost_its_p(M* m, nanos since) noexcept {
  if (threshold_ == 0) return;
  m->held_since = since;
  m->reported = false;
  next_ = std::min(next_, since + threshold_);
}

// Looks only at Ms without a P. None of them gets a P again while the lock is held, and an M without a P can neither
// end its goroutine nor go on to another. What is read of the goroutine here was written before the M left the runtime,
// and detach_running has seen the M outside.
std::size_t hog_watch::find_due(nanos now, hold* out, std::size_t most) noexcept {
  lock_guard hold_lock(sched.mutex);
  std::size_t n = 0;
  next_ = forever;
  for (M* m : sched.detached) {
    if (m->reported) continue;
    if (!is_one(now - m->held_since)) {
      next_ = std::min(next_, m->held_since + threshold_);
      continue;
    }
    m->reported = true;
    if (n == most) {
      ++left_out_;
      continue;
    }
    const G* g = m->g;
    hold& h = out[n++];
    h = {m->held_since, m->tid.load(relaxed), g->id, {}, g->spawn_pc};
    std::copy_n(g->name, sizeof h.name, h.name);
  }
  return n;
}

void hog_watch::look(nanos now) noexcept {
  if (threshold_ == 0) return;
  if (now >= second_ends_) {
    if (left_out_ != 0) {
      char text[96];
      auto r = fmt::format_to_n(text, sizeof text, "weft: {} more goroutines held their threads for long\n", left_out_);
      write_without_waiting(STDERR_FILENO, {text, r.size});
      left_out_ = 0;
    }
    lines_ = 0;
    second_ends_ = now + second;
  }
  if (now < next_) return;
  hold due[lines_per_second];
  const std::size_t n = find_due(now, due, lines_per_second - lines_);
  lines_ += n;
  for (std::size_t i = 0; i < n; ++i) print(due[i], now);
}

void hog_watch::print(const hold& h, nanos now) noexcept {
  char doing[64], text[256];
  auto r = fmt::format_to_n(text, sizeof text, "weft: goroutine {} holds its thread for {} ms now, {}; P handed off{}",
                            goroutine_name(h.id, h.name), (now - h.since) / millisecond,
                            describe_thread(h.tid, doing, sizeof doing), h.spawn_pc ? "; started by " : "");
  std::string_view line(text, std::min(r.size, sizeof text));
  report out(STDERR_FILENO, names::demangled, write_without_waiting);
  if (h.spawn_pc) {
    out.frame(line, {h.spawn_pc});
  } else {
    out.line("{}", line);
  }
}

}  // namespace weft::rt
