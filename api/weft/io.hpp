// Input and output in general: buffers, waiting for descriptors, signals.
//
// Here and in net.hpp, *anywhere* means: from a goroutine, or from any other thread of the process, which then blocks
// as a thread. A call that has to wait needs a running runtime; without one it throws std::logic_error.
#pragma once

#include <weft/chan.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/time.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <csignal>  // for the numbers that signal_channel takes
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace weft::io {

namespace detail {
template <class T>
concept byte_like = std::same_as<T, std::byte> || std::same_as<T, char> || std::same_as<T, unsigned char> ||
    std::same_as<T, signed char> || std::same_as<T, char8_t>;

template <class R>
concept byte_range =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && byte_like<std::ranges::range_value_t<R>>;

template <class R>
concept writable_byte_range =
    byte_range<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// An array of char is taken as text up to its terminating zero, not as a range of bytes.
template <class T>
concept char_like = std::same_as<T, char> || std::same_as<T, char8_t>;
template <class R>
concept char_array = std::is_array_v<std::remove_reference_t<R>> &&
    char_like<std::remove_cv_t<std::remove_extent_t<std::remove_reference_t<R>>>>;
template <class P>
concept char_pointer = std::is_pointer_v<P> && char_like<std::remove_const_t<std::remove_pointer_t<P>>>;
}  // namespace detail

// Memory to read into: std::span<std::byte>, std::span<char>, or any contiguous range of bytes that can be written to
// (an array, a std::vector<char>, a std::string with its present size). A buffer refers to the memory; it does not own
// it.
class mutable_buffer {
 public:
  constexpr mutable_buffer() noexcept = default;
  constexpr mutable_buffer(void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <detail::writable_byte_range R>
    requires(!std::same_as<std::remove_cvref_t<R>, mutable_buffer>)
  constexpr mutable_buffer(R&& r) noexcept : data_(std::ranges::data(r)), size_(std::ranges::size(r)) {}

  constexpr void* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Memory to write from: a std::span of bytes, a std::string_view, or any contiguous range of bytes. A `const char*`,
// and so also a string literal or an array of char, is text up to its terminating zero, or up to the array's end. To
// write a whole array, pass std::span(array).
class const_buffer {
 public:
  constexpr const_buffer() noexcept = default;
  constexpr const_buffer(const void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <detail::char_pointer P>  // a template; otherwise it would be preferred to the constructor for arrays
  constexpr const_buffer(P text) noexcept
      : const_buffer(text, std::char_traits<std::remove_const_t<std::remove_pointer_t<P>>>::length(text)) {}
  template <detail::char_like C, std::size_t N>
  constexpr const_buffer(const C (&text)[N]) noexcept
      : const_buffer(text, std::min(std::basic_string_view<C>(text, N).find(C()), N)) {}
  constexpr const_buffer(std::string_view text) noexcept : data_(text.data()), size_(text.size()) {}
  constexpr const_buffer(mutable_buffer b) noexcept : data_(b.data()), size_(b.size()) {}
  template <detail::byte_range R>
    requires(!std::same_as<std::remove_cvref_t<R>, const_buffer> &&
             !std::same_as<std::remove_cvref_t<R>, std::string_view> && !detail::char_array<R>)
  constexpr const_buffer(R&& r) noexcept : data_(std::ranges::data(r)), size_(std::ranges::size(r)) {}

  constexpr const void* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {
WEFT_API std::error_code wait_fd(int fd, bool writable, std::int64_t deadline_ns);
}

// --- any descriptor that can be polled: a pipe, a terminal, a timerfd, a socket of another library

// Waits until fd can be read from without blocking (end of file and errors count, too), or until `deadline`. The
// descriptor is registered for this call and forgotten afterwards, so it may be used and closed in any way later.
// Each call registers a copy of the descriptor, so several calls may wait for one at a time. Closing fd during the call
// does no harm: the call goes on waiting for the file, which stays open until the call returns; if run() ends while a
// goroutine is in the call, that is until the process ends. If the process has no descriptor left for the copy, the
// call looks at fd every 20 ms instead. Regular files are always ready. fd may be blocking or not, and stays as it is.
// Closing the copy ends the process's record locks on the file (fcntl, lockf), as POSIX wants it. Anywhere.
//
// Returns no error when fd is ready. Returns std::errc::timed_out if the deadline has passed, even if fd is ready by
// then; std::errc::bad_file_descriptor if fd is not open; std::errc::operation_canceled if run() ends while a thread
// that is not a goroutine waits; otherwise the system's error. Throws std::bad_alloc if there is no memory to wait
// with.
inline std::error_code wait_readable(int fd) { return detail::wait_fd(fd, false, weft::detail::never_ns); }
inline std::error_code wait_readable(int fd, weft::detail::any_point deadline) {
  return detail::wait_fd(fd, false, deadline.ns());
}

// Waits in the same way until fd can be written to.
inline std::error_code wait_writable(int fd) { return detail::wait_fd(fd, true, weft::detail::never_ns); }
inline std::error_code wait_writable(int fd, weft::detail::any_point deadline) {
  return detail::wait_fd(fd, true, deadline.ns());
}

// --- signals

// Returns a channel that receives the number of each of these signals when it arrives. The signal then has no other
// effect:
//
//     weft::chan<int> stop = weft::io::signal_channel({SIGINT, SIGTERM});
//     weft::select(weft::on_recv(stop, [](std::optional<int> s) { ... }), ...);
//
// The channel buffers 16 signals; a signal that arrives while it is full is dropped. Several channels may ask for the
// same signal, and each of them receives it. This lasts until stop_signals(c), even if no handle to the channel is left
// and after run() has ended. As long as it lasts, the deadlock check keeps silent. The child of a fork() receives
// nothing until it calls this function itself. Anywhere, also while no runtime is running.
//
// An empty list, a number that is not a signal, and a signal that cannot be received in this way (SIGKILL, SIGSEGV) are
// std::errc::invalid_argument. If there are no descriptors or threads left, the error is the system's. An error is
// thrown as std::system_error; the form with ec sets ec instead and returns a nil channel. Throws std::bad_alloc if
// there is no memory.
[[nodiscard]] WEFT_API chan<int> signal_channel(std::span<const int> numbers);
[[nodiscard]] WEFT_API chan<int> signal_channel(std::span<const int> numbers, std::error_code& ec);
[[nodiscard]] inline chan<int> signal_channel(std::initializer_list<int> numbers) {
  return signal_channel(std::span(numbers.begin(), numbers.size()));
}
[[nodiscard]] inline chan<int> signal_channel(std::initializer_list<int> numbers, std::error_code& ec) {
  return signal_channel(std::span(numbers.begin(), numbers.size()), ec);
}

// Stops delivering signals to c, and closes it. A signal that no other channel asks for has the effect again that it
// had before. Does nothing if c did not come from signal_channel or was stopped before. Anywhere.
WEFT_API void stop_signals(const chan<int>& c);

}  // namespace weft::io
