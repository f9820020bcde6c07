#include "sysmon/hogs.hpp"

#include "runtime/report.hpp"
#include "sysmon/thread_state.hpp"

#include <algorithm>
#include <unistd.h>

namespace weft::rt {

namespace {
constexpr int lines_per_second = 10;
}

void hog_watch::lost_its_p(M* m, nanos since) noexcept {
  if (threshold_ == 0) return;
  if (count_ == holds_.size()) {
    ++left_out_;
    return;
  }
  // What is read here was written before the M left the runtime, and detach_running has seen it leave.
  const G* g = m->g;
  hold& h = holds_[count_++];
  h = {m, m->regained, since, m->tid, g->id, {}, g->spawn_pc};
  std::copy_n(g->name, sizeof h.name, h.name);
}

void hog_watch::look(nanos now) noexcept {
  if (threshold_ == 0) return;
  if (now >= second_ends_) {
    if (left_out_ != 0) {
      print_error(fmt::format("weft: {} more goroutines held their threads for long\n", std::exchange(left_out_, 0)));
    }
    lines_ = 0;
    second_ends_ = now + second;
  }
  std::size_t due = 0;  // holds_[0, due): to be printed; [due, kept): go on
  {
    lock_guard hold_lock(sched.mutex);
    auto* over = std::remove_if(holds_.data(), holds_.data() + count_,
                                [](const hold& h) { return h.m->regained != h.regained; });
    count_ = static_cast<std::size_t>(over - holds_.data());
    due = static_cast<std::size_t>(std::partition(holds_.data(), holds_.data() + count_,
                                                  [&](const hold& h) { return now - h.since >= threshold_; }) -
                                   holds_.data());
  }
  for (std::size_t i = 0; i < due; ++i) {
    if (lines_ < lines_per_second) {
      ++lines_;
      print(holds_[i], now);
    } else {
      ++left_out_;
    }
  }
  std::copy(holds_.data() + due, holds_.data() + count_, holds_.data());
  count_ -= due;
}

nanos hog_watch::next_look() const noexcept {
  nanos next = left_out_ != 0 ? second_ends_ : forever;
  for (std::size_t i = 0; i < count_; ++i) next = std::min(next, holds_[i].since + threshold_);
  return next;
}

void hog_watch::print(const hold& h, nanos now) noexcept {
  char doing[64], text[256];
  const char* quote = h.name[0] ? "'" : "";
  auto r = fmt::format_to_n(
      text, sizeof text, "weft: goroutine {}{}{}{}{} holds its thread for {} ms now, {}; P handed off{}", h.id,
      h.name[0] ? " " : "", quote, static_cast<const char*>(h.name), quote, (now - h.since) / millisecond,
      describe_thread(h.tid, doing, sizeof doing), h.spawn_pc ? "; started by " : "");
  std::string_view line(text, std::min(r.size, sizeof text));
  report out(STDERR_FILENO, names::demangled);
  if (h.spawn_pc) {
    out.frame(line, {h.spawn_pc});
  } else {
    out.line("{}", line);
  }
}

}  // namespace weft::rt
