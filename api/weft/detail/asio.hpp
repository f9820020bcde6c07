// What lets a stream be one of Boost.Asio's and Beast's without an include of theirs: they are large, and most programs
// that use sockets have no need of them.
//
// So their types are only declared here, and every use stands in a template that depends on them: by the time a program
// calls it, it has included Boost's headers, before weft's or after.
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
// Leads the look-up of a function's name by the types of its arguments into this namespace.
struct weft_looks_here;
}  // namespace error
}  // namespace boost::asio

namespace boost::beast {
enum class role_type;
}

namespace weft::detail {

// --- sequences of buffers: one, or a range of some

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

// T says where memory is, or turns into Asio's type that does.
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

// What a stream takes as weft's own buffer it takes as that.
template <class T, class Byte>
concept asio_buffers = !std::convertible_to<const T&, own_type<Byte>> && (asio_buffer<T, Byte> || asio_range<T, Byte>);

// The first buffers of a sequence that are not empty: one attempt need not take all.
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

// Turns into boost::asio::error::misc_errors: among the enums for which make_error_code is there it alone has an eof.
// Code: nothing is looked up before it is known, and thus Asio's headers are there.
template <class Code, class Where = boost::asio::error::weft_looks_here>
struct asio_eof {
  template <class E>
    requires(std::is_enum_v<E>&& std::is_convertible_v<E, int>&& requires { E::eof; })
  constexpr operator E() const noexcept { return E::eof; }
};

// The result of a stream's call in the words of Asio: its eof, else what the system says.
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

// --- what a layer of Beast's wants of the one below

// A context that nobody runs. Never destroyed: what refers to it may be static.
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
