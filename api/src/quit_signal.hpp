// SIGQUIT: prints every goroutine and ends the process with code 2.
#pragma once

namespace weft::detail {

// Installed for the duration of a run(), if wanted. While a channel has the signal it has that, and not this. Two may
// overlap: the first's run() no longer counts as running when it ends here, and another thread may have begun one.
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
