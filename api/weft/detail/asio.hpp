// Makes weft's streams usable with Boost.Asio and Beast without including their headers, which are large; most programs
// that use sockets do not need them.
//
// Boost's types are only declared here, and each use of them is in a template that depends on them. A program that
// calls such a template has included Boost's headers by then, before weft's or after.
#pragma once

#include <weft/io.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <system_error>
#include <type_traits>

namespace boost::system {
class error_code;
}

namespace boost::asio {
class mutable_buffer;
class const_buffer;
class io_context;
namespace error {
// A type in this namespace, so that argument-dependent lookup looks here.
struct weft_looks_here;
}  // namespace error
}  // namespace boost::asio

namespace boost::beast {
enum class role_type;
}

namespace weft::detail {

// --- sequences of buffers: one buffer, or a range of buffers

template <class T>
concept mutable_memory = requires(const T& b) {
  { b.data() } -> std::same_as<void*>;
  { b.size() } -> std::convertible_to<std::size_t>;
};

template <class T>
concept const_memory = mutable_memory<T> || requires(const T& b) {
  { b.data() } -> std::same_as<const void*>;
  { b.size() } -> std::convertible_to<std::size_t>;
};

// Byte: std::byte to read into it, const std::byte to write from it.
template <class Byte>
using asio_type = std::conditional_t<std::is_const_v<Byte>, boost::asio::const_buffer, boost::asio::mutable_buffer>;

template <class Byte>
using own_type = std::conditional_t<std::is_const_v<Byte>, io::const_buffer, io::mutable_buffer>;

// T tells where memory is, or converts to the type of Asio's that does.
template <class T, class Byte>
concept asio_buffer = (std::is_const_v<Byte> ? const_memory<T> : mutable_memory<T>) ||
                      (std::is_class_v<T> && requires(const T& b) { asio_type<Byte>(b); });

template <class T>
using range_element = std::remove_cvref_t<decltype(*std::declval<const T&>().begin())>;

template <class T, class Byte>
concept asio_range = requires(const T& r) {
  r.begin() != r.end();
  requires asio_buffer<range_element<T>, Byte>;
};

// A type that converts to weft's own buffer is excluded: a stream takes it as that.
template <class T, class Byte>
concept asio_buffers = !std::convertible_to<const T&, own_type<Byte>> && (asio_buffer<T, Byte> || asio_range<T, Byte>);

// The first non-empty buffers of a sequence. They need not be all of them: one attempt may transfer less.
template <class Byte>
class gathered {
 public:
  template <class Buffers>
  explicit gathered(const Buffers& buffers) {
    if constexpr (asio_buffer<Buffers, Byte>) {
      add(buffers);
    } else {
      for (auto at = buffers.begin(), end = buffers.end(); at != end && count_ < parts_.size(); ++at) {
        add<range_element<Buffers>>(*at);
      }
    }
  }
  bool empty() const noexcept { return count_ == 0; }
  std::span<const std::span<Byte>> parts() const noexcept { return {parts_.data(), count_}; }

 private:
  template <class T>
  void add(const T& b) {
    if constexpr (const_memory<T>) {
      if (std::size_t n = b.size()) parts_[count_++] = {static_cast<Byte*>(b.data()), n};
    } else {
      add(asio_type<Byte>(b));
    }
  }

  std::array<std::span<Byte>, 16> parts_;
  std::size_t count_ = 0;
};

// --- error codes

template <class E>
concept asio_error_code = requires(E& ec) {
  ec = E();
  ec.assign(1, ec.category());
};

// Converts to boost::asio::error::misc_errors, the only enum with an eof among those that have a make_error_code. The
// parameter Code delays the lookup until Code is known; Asio's headers are included by then.
template <class Code, class Where = boost::asio::error::weft_looks_here>
struct asio_eof {
  template <class E>
    requires(std::is_enum_v<E>&& std::is_convertible_v<E, int>&& requires { E::eof; })
  constexpr operator E() const noexcept { return E::eof; }
};

// Sets `to` to the result of a stream's call as Asio reports it: Asio's eof, or else the system's error.
template <class Code>
void assign_as_asio(Code& to, const std::error_code& from, const std::error_code& eof) {
  if constexpr (std::same_as<Code, std::error_code>) {
    to = from;
  } else {
    to = Code();
    if (from == eof) {
      to = make_error_code(asio_eof<Code>());  // needs <boost/asio/error.hpp>
    } else if (from) {
      to.assign(from.value(), to.category());
    }
  }
}

// --- what a layer of Beast's requires of the layer below

// Returns a context that nobody runs. It is never destroyed, since static objects may refer to it.
template <class Context>
Context& idle_context() {
  static Context& c = *new Context;
  return c;
}

template <class Role>
bool is_server(Role r) noexcept {
  return r == Role::server;
}

}  // namespace weft::detail
