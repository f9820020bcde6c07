#include "api/src/quit_signal.hpp"

#include "runtime/fatal.hpp"
#include "sched/proc.hpp"

#include <unistd.h>

namespace weft::detail {

namespace {

void on_quit(int) {
  rt::print_error("SIGQUIT: quit\n\n");
  rt::dump_goroutines(STDERR_FILENO, true);
  _exit(2);
}

}  // namespace

quit_signal_scope::quit_signal_scope(bool wanted) noexcept {
  if (!wanted) return;
  struct sigaction action {};
  action.sa_handler = on_quit;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  installed_ = ::sigaction(SIGQUIT, &action, &before_) == 0;
}

quit_signal_scope::~quit_signal_scope() {
  if (installed_) ::sigaction(SIGQUIT, &before_, nullptr);
}

}  // namespace weft::detail
