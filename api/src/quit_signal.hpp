// SIGQUIT: prints every goroutine and ends the process with code 2.
#pragma once

namespace weft::detail {

// Installs the handler for the duration of a run(), if wanted. While a channel has the signal, the channel gets it and
// the handler does not. Two scopes may overlap: when the first one ends, its run() no longer counts as running, and
// another thread may have begun the next.
class quit_signal_scope {
 public:
  explicit quit_signal_scope(bool wanted) noexcept;
  ~quit_signal_scope();
  quit_signal_scope(const quit_signal_scope&) = delete;
  quit_signal_scope& operator=(const quit_signal_scope&) = delete;

 private:
  const bool wanted_;
};

}  // namespace weft::detail
