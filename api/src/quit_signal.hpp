// SIGQUIT: prints every goroutine and ends the process with code 2.
#pragma once

#include <csignal>

namespace weft::detail {

// Installed for the duration of a run(), if wanted. While a channel has the signal it has that, and not this.
class quit_signal_scope {
 public:
  explicit quit_signal_scope(bool wanted) noexcept;
  ~quit_signal_scope();
  quit_signal_scope(const quit_signal_scope&) = delete;
  quit_signal_scope& operator=(const quit_signal_scope&) = delete;

 private:
  bool installed_ = false;
  struct sigaction before_ {};
};

}  // namespace weft::detail
