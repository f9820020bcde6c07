#include "runtime/fatal.hpp"

#include "runtime/atomic.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <poll.h>
#include <unistd.h>

namespace weft::rt {

namespace {

constinit atomic<dump_hook> the_dump_hook{nullptr};
constinit atomic<bool> dying{false};

[[noreturn]] void die(std::string_view headline, dump_of what) noexcept {
  // The first thread to die reports. A thread that fails meanwhile waits for the process to end. A fault inside the
  // report itself ends the process at once.
  static thread_local bool reporting = false;
  if (reporting) _exit(2);
  if (dying.exchange(true, relaxed)) {  // relaxed: it only decides which is first
    for (;;) pause();
  }
  reporting = true;
  flush_stdout();
  print_error(headline);
  if (dump_hook hook = the_dump_hook.load(acquire)) hook(what);
  _exit(2);
}

// True if fd takes more output now, or within `timeout` milliseconds.
bool takes_more(int fd, int timeout) noexcept {
  pollfd p{fd, POLLOUT, 0};
  return ::poll(&p, 1, timeout) == 1 && (p.revents & POLLOUT);
}

}  // namespace

no_sigpipe::no_sigpipe() noexcept {
  sigset_t pending;
  sigemptyset(&pipe_);
  sigaddset(&pipe_, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  ::sigpending(&pending);
  theirs_ = sigismember(&pending, SIGPIPE) == 1;
}

no_sigpipe::~no_sigpipe() {
  if (failed_ && !theirs_) {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void write_all(int fd, std::string_view text) noexcept {
  no_sigpipe quiet;
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR && !(errno == EAGAIN && takes_more(fd, 1000))) {
      break;
    }
  }
  if (!text.empty()) quiet.write_failed(errno);
}

void write_without_waiting(int fd, std::string_view text) noexcept {
  constexpr std::size_t at_once = PIPE_BUF;  // a pipe that takes more has room for this
  for (; !text.empty() && takes_more(fd, 0); text.remove_prefix(std::min(text.size(), at_once))) {
    write_all(fd, text.substr(0, at_once));
  }
}

void flush_stdout() noexcept {
  if (::ftrylockfile(stdout) != 0) return;
  if (takes_more(::fileno_unlocked(stdout), 0)) {
    no_sigpipe quiet;
    if (::fflush_unlocked(stdout) != 0) quiet.write_failed(errno);
  }
  ::funlockfile(stdout);
}

void print_error(std::string_view text) noexcept { write_all(STDERR_FILENO, text); }

void set_dump_hook(dump_hook hook) noexcept { the_dump_hook.store(hook, release); }

void fatal_message(std::string_view message, dump_of what) noexcept {
  fmt::basic_memory_buffer<char, 768> out;
  fmt::format_to(std::back_inserter(out), "fatal error: {}\n\n", message);
  die({out.data(), out.size()}, what);
}

void assert_failed(const char* condition, const char* file, int line, std::string_view values) noexcept {
  fmt::basic_memory_buffer<char, 768> out;
  fmt::format_to(std::back_inserter(out), "weft: internal error: {} is false: {} ({}:{})\n\n", condition, values, file,
                 line);
  die({out.data(), out.size()}, dump_of::caller_and_all);
}

}  // namespace weft::rt
