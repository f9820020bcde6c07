#include "api/src/quit_signal.hpp"

#include "api/src/signals.hpp"
#include "runtime/fatal.hpp"
#include "runtime/sanitizer.hpp"
#include "sysmon/sysmon.hpp"

#include <atomic>
#include <cerrno>
#include <unistd.h>

namespace weft::detail {

namespace {

constinit std::atomic<int> signals{0};

// sysmon does the rest. If it does not run, or cannot (a second signal), this thread does what it can.
void on_quit(int) {
  int e = errno;
  if (signals.fetch_add(1) == 0) {
    rt::print_error("SIGQUIT: quit\n\n");
    if (rt::request_quit()) {
      errno = e;
      return;
    }
  }
  rt::dump_goroutines(STDERR_FILENO, rt::dump_of::all_goroutines, rt::names::mangled);
  _exit(2);
}

}  // namespace

quit_signal_scope::quit_signal_scope(bool wanted) noexcept {
  if (!wanted) return;
  struct sigaction action {};
  action.sa_handler = on_quit;
  // ThreadSanitizer calls handlers only when a system call returns.
  action.sa_flags = SA_ONSTACK | (rt::tsan_running() ? 0 : SA_RESTART);
  sigemptyset(&action.sa_mask);
  io::set_action_beneath_channels(SIGQUIT, action, &before_);
  installed_ = true;
}

quit_signal_scope::~quit_signal_scope() {
  if (installed_) io::set_action_beneath_channels(SIGQUIT, before_, nullptr);
}

}  // namespace weft::detail
