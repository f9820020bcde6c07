// The dump of goroutines, for fatal errors, SIGQUIT and dump_goroutines(). Allocates nothing but what demangling a name
// needs, and takes no lock but those of the stack classes.

#include "runtime/g_pool.hpp"
#include "runtime/thread.hpp"
#include "runtime/traceback.hpp"
#include "sched/proc.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace weft::rt {

namespace {

class writer {
 public:
  explicit writer(int fd) noexcept : fd_(fd) {}
  ~writer() { flush(); }
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) noexcept {
    char text[1024];
    auto r = fmt::format_to_n(text, sizeof text - 1, format, std::forward<Args>(args)...);
    std::size_t n = std::min(r.size, sizeof text - 1);
    text[n++] = '\n';
    if (used_ + n > sizeof buffer_) flush();
    std::copy_n(text, n, buffer_ + used_);
    used_ += n;
  }

  void flush() noexcept {
    std::size_t at = 0;
    while (at < used_) {
      ssize_t n = ::write(fd_, buffer_ + at, used_ - at);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) at += static_cast<std::size_t>(n);
    }
    used_ = 0;
  }

 private:
  int fd_;
  std::size_t used_ = 0;
  char buffer_[8192];
};

void write_frames(writer& out, const trace_frame* frames, std::size_t n) noexcept {
  char name[768];
  for (std::size_t i = 0; i < n; ++i) {
    out.line("    {}", symbolize(frames[i].pc, name, sizeof name));
  }
}

void write_goroutine(writer& out, const G* g, const G* self, nanos now) noexcept {
  g_state state = g->get_state();
  char what[96];
  char* end = what + sizeof what - 1;
  if (state == g_state::waiting) {
    end = fmt::format_to_n(what, sizeof what - 1, "{}", describe(g->reason)).out;
    double seconds = static_cast<double>(now - g->wait_since) / 1e9;
    if (g->wait_since != 0 && seconds >= 1) {
      end = fmt::format_to_n(end, static_cast<std::size_t>(what + sizeof what - 1 - end), ", {:.1f} s", seconds).out;
    }
  } else {
    end = fmt::format_to_n(what, sizeof what - 1, "{}", describe(state)).out;
  }
  *end = '\0';
  const char* quote = g->name[0] ? "'" : "";
  out.line("goroutine {}{}{}{}{} [{}{}]:", g->id, g->name[0] ? " " : "", quote, static_cast<const char*>(g->name),
           quote, static_cast<const char*>(what), g->locked_to_thread ? ", locked to thread" : "");

  trace_frame frames[max_frames];
  std::size_t n = 0;
  if (g == self) {
    n = trace_here(frames, max_frames, 2);
  } else if (state == g_state::running || state == g_state::syscall) {
    out.line("    (runs on another thread; its stack is not readable from here)");
  } else if (g->park_frame) {
    n = trace_parked(g, frames, max_frames);
  } else {
    out.line("    (not started yet)");
  }
  write_frames(out, frames, n);
  if (g->spawn_pc) {
    char name[768];
    out.line("    started by {}", symbolize(g->spawn_pc, name, sizeof name));
  }
  out.line("");
}

struct dump_state {
  writer* out;
  const G* self;
  nanos now;
};

}  // namespace

void dump_goroutines(int fd, bool all) noexcept {
  thread_state* ts = this_thread_or_null();
  const G* self = ts && ts->g && ts->g->kind == g_kind::goroutine ? ts->g : nullptr;
  writer out(fd);
  dump_state state{&out, self, nanotime()};
  if (self) write_goroutine(out, self, self, state.now);
  if (!all) return;
  for_each_g(
      [](G* g, void* arg) {
        auto* s = static_cast<dump_state*>(arg);
        g_state now_in = g->get_state();
        if (g == s->self || g->system || now_in == g_state::idle || now_in == g_state::dead) return;
        if (now_in == g_state::abandoned) return;
        write_goroutine(*s->out, g, s->self, s->now);
      },
      &state);
}

}  // namespace weft::rt
