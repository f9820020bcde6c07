// How the runtime dies: two spellings for two kinds of fault.
//
//   fatal(...)         the program misused weft (unlocked an unlocked mutex) or cannot go on (deadlock):
//                      one line that says what, with values; which goroutine; its trace. Exit code 2.
//   WEFT_ASSERT(...)   a fault of our own: the condition, the values, where; every goroutine. Exit code 2.
//
// What a user can recover from is an exception and never comes here.
#pragma once

#include "runtime/config.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>

namespace weft::rt {

// What the report shows beside its message. `caller`: where this thread is, whether it runs a goroutine or not.
enum class dump_of : std::uint8_t { caller, all_goroutines, caller_and_all };

[[noreturn]] void fatal_message(std::string_view message, dump_of what = dump_of::caller) noexcept;
[[noreturn]] void assert_failed(const char* condition, const char* file, int line, std::string_view values) noexcept;

// While an object of this class lives, a write of the calling thread to a pipe that nobody reads any more raises no
// SIGPIPE. A write that fails sends the signal to this thread, where it is blocked, and is taken at the end. A SIGPIPE
// that was pending before is somebody else's, and stays. Async-signal-safe.
class no_sigpipe {
 public:
  no_sigpipe() noexcept;
  ~no_sigpipe();
  no_sigpipe(const no_sigpipe&) = delete;
  no_sigpipe& operator=(const no_sigpipe&) = delete;
  void write_failed(int error) noexcept { failed_ |= error == EPIPE; }

 private:
  sigset_t pipe_, before_;
  bool theirs_, failed_ = false;
};

// Calls write(2) until all is written. Raises no SIGPIPE if fd is a pipe that nobody reads any more, because the
// disposition of that signal is the program's. If fd is non-blocking and full, gives up after a second without any
// progress. Async-signal-safe.
void write_all(int fd, std::string_view text) noexcept;
// For a thread that must not wait (sysmon): leaves out what fd does not take, because a pipe is full or a terminal was
// stopped.
void write_without_waiting(int fd, std::string_view text) noexcept;

// Writes out what the program has printed to stdout and the C library still holds. Must not be called in a signal
// handler. Does not wait: writes nothing if another thread holds the stream just now, or if nobody takes the output.
void flush_stdout() noexcept;

// Writes `text` to stderr in one piece, so that lines of several threads do not mix.
void print_error(std::string_view text) noexcept;

template <class... Args>
[[noreturn]] void fatal(fmt::format_string<Args...> format, Args&&... args) noexcept {
  fmt::basic_memory_buffer<char, 512> out;
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  fatal_message({out.data(), out.size()});
}

template <class... Args>
[[noreturn]] void assert_failed_with(const char* condition, const char* file, int line,
                                     fmt::format_string<Args...> format, Args&&... args) noexcept {
  fmt::basic_memory_buffer<char, 512> out;
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  assert_failed(condition, file, line, {out.data(), out.size()});
}

// The scheduler, which knows the goroutines, installs the function that prints them.
using dump_hook = void (*)(dump_of) noexcept;
void set_dump_hook(dump_hook hook) noexcept;

}  // namespace weft::rt

#define WEFT_ASSERT(condition, ...)                                                \
  do {                                                                             \
    if (__builtin_expect(!(condition), 0))                                         \
      ::weft::rt::assert_failed_with(#condition, __FILE__, __LINE__, __VA_ARGS__); \
  } while (false)

#if WEFT_CHECKS
#define WEFT_CHECK(condition, ...) WEFT_ASSERT(condition, __VA_ARGS__)
#else
#define WEFT_CHECK(condition, ...) \
  do {                             \
  } while (false)
#endif
