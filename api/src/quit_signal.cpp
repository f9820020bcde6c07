#include "api/src/quit_signal.hpp"

#include "api/src/signals.hpp"
#include "runtime/atomic.hpp"
#include "runtime/fatal.hpp"
#include "runtime/sanitizer.hpp"
#include "sched/dump.hpp"
#include "sysmon/sysmon.hpp"

#include <cerrno>
#include <csignal>
#include <mutex>
#include <unistd.h>

namespace weft::detail {

namespace {

constinit rt::atomic<int> signals{0};

// sysmon does it. If it does not run, or cannot do it (a second signal), this thread does what it can.
void on_quit(int) {
  int e = errno;
  if (signals.fetch_add(1, rt::relaxed) == 0 && rt::request_quit()) {  // relaxed: it only counts
    errno = e;
    return;
  }
  rt::print_error("SIGQUIT: quit\n\n");
  rt::dump_goroutines(STDERR_FILENO, rt::dump_of::all_goroutines, rt::names::mangled);
  _exit(2);
}

// The first scope that wants the handler installs it, and the last puts back what was there. Scopes may overlap, since
// a scope must end after stop_runtime, which may take long, and by then the next run() may have begun.
struct {
  std::mutex mutex;
  unsigned scopes = 0;
  struct sigaction before {};
} installed;

}  // namespace

quit_signal_scope::quit_signal_scope(bool wanted) noexcept : wanted_(wanted) {
  if (!wanted_) return;
  struct sigaction action {};
  action.sa_handler = on_quit;
  // ThreadSanitizer calls handlers only when a system call returns, so system calls are not restarted there.
  action.sa_flags = SA_ONSTACK | (rt::tsan_running() ? 0 : SA_RESTART);
  sigemptyset(&action.sa_mask);
  std::lock_guard hold(installed.mutex);
  if (installed.scopes++ == 0) io::set_action_beneath_channels(SIGQUIT, action, &installed.before);
}

quit_signal_scope::~quit_signal_scope() {
  if (!wanted_) return;
  std::lock_guard hold(installed.mutex);
  if (--installed.scopes != 0) return;
  struct sigaction present {};
  io::set_action_beneath_channels(SIGQUIT, installed.before, &present);
  // The program has installed a handler of its own meanwhile.
  if (present.sa_handler != on_quit) io::set_action_beneath_channels(SIGQUIT, present, nullptr);
}

}  // namespace weft::detail
