// Networking: TCP, unix and UDP sockets with blocking calls that park only the goroutine.
//
// What holds for all of them:
//
//   who may call          anywhere: from a goroutine, or, while a runtime is running, from another thread, which then
//                         blocks as a thread. While no runtime is running, calls that open, accept, set a deadline or
//                         have to wait throw std::logic_error.
//   errors                a call that can fail throws std::system_error. The form with a trailing std::error_code& sets
//                         that instead; it throws nothing but std::bad_alloc and std::logic_error.
//       timed_out               the deadline has passed, even if data is ready; or the system gave the peer up (no
//                               deadline has passed then)
//       operation_canceled      the object was closed by another goroutine while this call was waiting; or run() ended
//                               while the call was waiting in a thread that is not a goroutine
//       bad_file_descriptor     the object was closed before the call
//       invalid_argument        malformed address
//       connection_reset, broken_pipe   the peer is gone; there is never a SIGPIPE. If a write on a unix_stream waits
//                               for room, and the peer shuts down only its reading, the system does not tell the writer
//       not_connected           shutdown_write after a reset by the peer
//       anything else           the system's
//   sharing               one goroutine may read while another writes. Several readers take turns, and so do several
//                         writers: whole write()s do not mix. Moving, assigning and destroying an object needs the
//                         usual care; these do no harm to calls that already wait in the object.
//   close, destruction    wake every waiting call with operation_canceled. The descriptor is closed when the last call
//                         has left it, so no call ever uses a number that was given out again. close() and the
//                         destructor wait for that, for at most a second. If main() owns objects that other goroutines
//                         wait in, the end of main() makes their calls throw: use the forms with an error code there,
//                         or wait for these goroutines first.
//   deadlines             a deadline is a point of the steady clock. It holds for all calls that follow, and for a call
//                         that waits now. A past point wakes that call at once, but if the deadline is moved away again
//                         before the call has run, it waits on; time_point::max() means none. No call fails before its
//                         deadline. A waiting call is woken within microseconds of it if a processor is free; an
//                         accept() that waits because the process has no descriptor left, within 20 ms of its deadline
//                         or of close().
//   Boost                 a stream is a SyncReadStream and a SyncWriteStream of Boost.Asio, and may be the next layer
//                         of Beast's websocket::stream. read_some and write_some also take Asio's buffer sequences and
//                         boost::system::error_code, which then compares with boost::asio::error: eof, timed_out,
//                         operation_aborted (closed by another goroutine), bad_descriptor, connection_reset, ...
//                         Without an error code they throw std::system_error. Nothing of Boost is included here; its
//                         headers may come before or after. There are no asynchronous calls. Beast uses much stack:
//                         give its goroutines a stack_size of 1 MiB.
//   addresses             "host:port", "1.2.3.4:80", "[::1]:80", or ":80" (to bind: every interface; to connect: this
//                         machine). The port may be the name of a service, and the host a name to be resolved.
#pragma once

#include <weft/detail/asio.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/time.hpp>
#include <weft/io.hpp>

#include <array>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace weft {
class context;
}

namespace weft::net {

using io::const_buffer;
using io::mutable_buffer;

// Errors for which std::errc has no name.
enum class error {
  eof = 1,         // the stream ended where more data was needed
  host_not_found,  // the name has no address
  try_again,       // the name server did not answer
  no_recovery,     // name resolution failed for good
};
WEFT_API const std::error_category& error_category() noexcept;
inline std::error_code make_error_code(error e) noexcept { return {static_cast<int>(e), error_category()}; }

// An address: IP address and port, or the path of a unix socket. An IPv4 address in IPv6 form (::ffff:127.0.0.1, as
// sockets of both families report it) becomes an IPv4 address.
class WEFT_API endpoint {
 public:
  endpoint() noexcept;  // 0.0.0.0:0

  // Parses a numeric address: "127.0.0.1:80", "[::1%lo]:80". Anything else is invalid_argument. No name is resolved.
  static endpoint parse(std::string_view text);
  static endpoint parse(std::string_view text, std::error_code& ec);

  // Makes an endpoint from the system's form: a sockaddr of any family, if its size fits here; otherwise 0.0.0.0:0.
  static endpoint from_native(const void* sockaddr, std::size_t size) noexcept;

  std::uint16_t port() const noexcept;  // 0 for a unix socket
  void set_port(std::uint16_t port) noexcept;
  std::string address() const;    // "127.0.0.1", "::1"; the path of a unix socket
  std::string to_string() const;  // "127.0.0.1:80", "[::1]:80"; the path of a unix socket
  bool is_v4() const noexcept;
  bool is_v6() const noexcept;
  bool is_unix() const noexcept;

  // The system's form: a sockaddr and its size.
  const void* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }

  // Ordered by family, then by address, port and, for IPv6, interface. std::hash agrees.
  friend WEFT_API bool operator==(const endpoint& a, const endpoint& b) noexcept;
  friend WEFT_API std::strong_ordering operator<=>(const endpoint& a, const endpoint& b) noexcept;

 private:
  friend struct std::hash<endpoint>;
  std::size_t hash() const noexcept;

  alignas(8) std::array<std::byte, 112> bytes_{};
  std::uint32_t size_ = 0;
};

inline std::string to_string(const endpoint& e) { return e.to_string(); }

namespace detail {
WEFT_API void resolve(const std::string& host, const std::string& service, void (*f)(void* arg, const endpoint&),
                      void* arg, std::error_code* ec);

// The vector is the caller's, since that of a program compiled with _GLIBCXX_DEBUG is another one than the library's.
inline std::vector<endpoint> resolve(const std::string& host, const std::string& service, std::error_code* ec) {
  std::vector<endpoint> found;
  resolve(
      host, service, [](void* to, const endpoint& e) { static_cast<decltype(found)*>(to)->push_back(e); }, &found, ec);
  return found;
}
}  // namespace detail

// Returns the addresses of host and service (a name or a number; "" for none), in the order in which they should be
// tried. What is not numeric is looked up with the system's resolver, on a thread of its own; other goroutines run
// meanwhile. At most 100 lookups run at once; further ones wait. A lookup cannot be stopped: it goes on if its caller
// gives up, and the end of run() waits for it, as for a goroutine that blocks, for at most options::shutdown_grace. If
// the service is known for both TCP and UDP, the port is TCP's. A port number beyond 65535, an unknown service, and
// text that cannot be a name are invalid_argument. Anywhere; a thread that is not a goroutine gets operation_canceled
// if run() ends meanwhile.
inline std::vector<endpoint> resolve(const std::string& host, const std::string& service) {
  return detail::resolve(host, service, nullptr);
}
inline std::vector<endpoint> resolve(const std::string& host, const std::string& service, std::error_code& ec) {
  return detail::resolve(host, service, &ec);
}

namespace detail {
struct descriptor;

// What all sockets have.
class WEFT_API socket {
 public:
  // False if the object is default-constructed, moved from or closed, or if opening it failed.
  bool is_open() const noexcept;

  // Returns the descriptor, which is non-blocking and registered with weft's poller; -1 if closed. This object keeps
  // owning it.
  int native_handle() const noexcept;

  // Wakes every waiting call; the descriptor is closed when close() returns. The exception: calls that do not leave it
  // within a second keep it open, such as those that were left behind by a run() that is over. A second close() does
  // nothing; the form with ec sets bad_file_descriptor.
  void close() noexcept;
  void close(std::error_code& ec) noexcept;

  // As close(), but does not close the descriptor. It returns it to the caller, who owns it from then on; it is still
  // non-blocking. A call that has not left within a second may still use it.
  int release();
  int release(std::error_code& ec);

  // Sets the deadline of reading, writing or both, for the calls that wait now and for those that follow. After
  // std::bad_alloc, each direction has either its new deadline or still the old one.
  void set_deadline(weft::detail::any_point t);
  void set_deadline(weft::detail::any_point t, std::error_code& ec);
  void set_read_deadline(weft::detail::any_point t);
  void set_read_deadline(weft::detail::any_point t, std::error_code& ec);
  void set_write_deadline(weft::detail::any_point t);
  void set_write_deadline(weft::detail::any_point t, std::error_code& ec);

  endpoint local_endpoint() const;
  endpoint local_endpoint(std::error_code& ec) const;

  socket(const socket&) = delete;
  socket& operator=(const socket&) = delete;

 protected:
  socket() noexcept = default;
  explicit socket(descriptor* d) noexcept : d_(d) {}
  socket(socket&& o) noexcept : d_(std::exchange(o.d_, nullptr)) {}
  socket& operator=(socket&& o) noexcept {
    socket old(std::move(o));
    std::swap(d_, old.d_);
    return *this;
  }
  ~socket();  // closes

  descriptor* d_ = nullptr;
};

// True if the bytes of a range's element are still there when the range has been listed: the element is an object of
// the range, or it does not own its bytes.
template <class Reference>
concept refers_to_bytes = std::is_lvalue_reference_v<Reference> || std::is_pointer_v<std::remove_cvref_t<Reference>> ||
    std::ranges::borrowed_range<std::remove_cvref_t<Reference>> ||
    std::same_as<std::remove_cvref_t<Reference>, const_buffer> ||
    std::same_as<std::remove_cvref_t<Reference>, mutable_buffer>;

// A range of elements that convert to a buffer. The spans that readv and writev take as they are do not count. Byte:
// std::byte to read into the buffers, const std::byte to write from them.
template <class R, class Byte>
concept range_of_buffers = std::ranges::forward_range<R> && refers_to_bytes<std::ranges::range_reference_t<R>> &&
    std::convertible_to<std::ranges::range_reference_t<R>, weft::detail::own_type<Byte>> &&
    !std::convertible_to<R, std::span<const std::span<Byte>>>;

template <class Byte, class R>
std::vector<std::span<Byte>> listed(R&& buffers) {
  std::vector<std::span<Byte>> list;
  for (auto&& buffer : buffers) {
    const weft::detail::own_type<Byte> b = buffer;
    list.emplace_back(static_cast<Byte*>(b.data()), b.size());
  }
  return list;
}

// A connection: bytes in both directions.
class WEFT_API stream : public socket {
 public:
  // Waits until data is there, and reads what is there, at least one byte. 0: the peer has sent everything, or b is
  // empty.
  std::size_t read(mutable_buffer b);
  std::size_t read(mutable_buffer b, std::error_code& ec);

  // Fills b. If the stream ends before that, the error is error::eof. The form with ec returns the count read so far.
  std::size_t read_exactly(mutable_buffer b);
  std::size_t read_exactly(mutable_buffer b, std::error_code& ec);

  // Writes all of b and returns its size. If it fails, the form with ec returns the count written so far.
  std::size_t write(const_buffer b);
  std::size_t write(const_buffer b, std::error_code& ec);

  // Reads or writes as much as can be transferred at once, but waits for at least one byte. As with Asio, the end of
  // the stream is error::eof.
  std::size_t read_some(mutable_buffer b);
  std::size_t read_some(mutable_buffer b, std::error_code& ec);
  std::size_t write_some(const_buffer b);
  std::size_t write_some(const_buffer b, std::error_code& ec);

  // The same with Asio's buffer sequences and error codes. With a sequence that has no bytes, returns 0 at once, and no
  // error.
  template <weft::detail::asio_buffers<std::byte> Buffers>
  std::size_t read_some(const Buffers& buffers) {
    weft::detail::gathered<std::byte> to(buffers);
    return to.empty() ? 0 : readv_some(to.parts());
  }
  template <weft::detail::asio_buffers<std::byte> Buffers, weft::detail::asio_error_code Code>
  std::size_t read_some(const Buffers& buffers, Code& ec) {
    weft::detail::gathered<std::byte> to(buffers);
    std::error_code result;
    std::size_t n = to.empty() ? 0 : readv_some(to.parts(), result);
    weft::detail::assign_as_asio(ec, result, make_error_code(error::eof));
    return n;
  }
  template <weft::detail::asio_buffers<const std::byte> Buffers>
  std::size_t write_some(const Buffers& buffers) {
    weft::detail::gathered<const std::byte> from(buffers);
    return from.empty() ? 0 : writev_some(from.parts());
  }
  template <weft::detail::asio_buffers<const std::byte> Buffers, weft::detail::asio_error_code Code>
  std::size_t write_some(const Buffers& buffers, Code& ec) {
    weft::detail::gathered<const std::byte> from(buffers);
    std::error_code result;
    std::size_t n = from.empty() ? 0 : writev_some(from.parts(), result);
    weft::detail::assign_as_asio(ec, result, make_error_code(error::eof));
    return n;
  }

  // For Beast's websocket::stream, which has timers for its asynchronous calls and asks for their executor. Nothing
  // ever runs on it.
  template <class Context = boost::asio::io_context>
  typename Context::executor_type get_executor() {
    return weft::detail::idle_context<Context>().get_executor();
  }

  // readv does what read does, into several buffers in turn; writev does what write does, from several buffers. The
  // buffers are listed (`s.writev({head, body})`), or are a range of objects that are buffers. Unless it is a range of
  // spans of bytes, a list is made from it first, which may throw std::bad_alloc. Such a range must be a forward_range
  // of references, spans, string views, pointers to text or weft's buffers; not of strings by value, which would be
  // gone by then.
  std::size_t readv(std::span<const std::span<std::byte>> buffers);
  std::size_t readv(std::span<const std::span<std::byte>> buffers, std::error_code& ec);
  std::size_t writev(std::span<const std::span<const std::byte>> buffers);
  std::size_t writev(std::span<const std::span<const std::byte>> buffers, std::error_code& ec);
  std::size_t readv(std::initializer_list<mutable_buffer> buffers) { return readv(listed<std::byte>(buffers)); }
  std::size_t readv(std::initializer_list<mutable_buffer> buffers, std::error_code& ec) {
    return readv(listed<std::byte>(buffers), ec);
  }
  std::size_t writev(std::initializer_list<const_buffer> buffers) { return writev(listed<const std::byte>(buffers)); }
  std::size_t writev(std::initializer_list<const_buffer> buffers, std::error_code& ec) {
    return writev(listed<const std::byte>(buffers), ec);
  }
  template <range_of_buffers<std::byte> R>
  std::size_t readv(R&& buffers) {
    return readv(listed<std::byte>(buffers));
  }
  template <range_of_buffers<std::byte> R>
  std::size_t readv(R&& buffers, std::error_code& ec) {
    return readv(listed<std::byte>(buffers), ec);
  }
  template <range_of_buffers<const std::byte> R>
  std::size_t writev(R&& buffers) {
    return writev(listed<const std::byte>(buffers));
  }
  template <range_of_buffers<const std::byte> R>
  std::size_t writev(R&& buffers, std::error_code& ec) {
    return writev(listed<const std::byte>(buffers), ec);
  }

  // Ends writing: the peer reads what was written before, and then the end of the stream.
  void shutdown_write();
  void shutdown_write(std::error_code& ec);

  endpoint remote_endpoint() const;
  endpoint remote_endpoint(std::error_code& ec) const;

 protected:
  stream() noexcept = default;
  explicit stream(descriptor* d) noexcept : socket(d) {}
  stream(stream&&) noexcept = default;
  stream& operator=(stream&&) noexcept = default;
  ~stream() = default;

  static std::int64_t from_now(std::int64_t ns) noexcept;
  template <class Duration>
  static time_point point_in(const Duration& limit) noexcept {
    return time_point(std::chrono::nanoseconds(from_now(weft::detail::to_ns(limit))));
  }

 private:
  // One attempt each. There are at most 64 buffers, and they hold at least one byte.
  std::size_t readv_some(std::span<const std::span<std::byte>> buffers);
  std::size_t readv_some(std::span<const std::span<std::byte>> buffers, std::error_code& ec);
  std::size_t writev_some(std::span<const std::span<const std::byte>> buffers);
  std::size_t writev_some(std::span<const std::span<const std::byte>> buffers, std::error_code& ec);
};

// How Beast closes a connection. Beast finds it by argument-dependent lookup.
inline void beast_close_socket(socket& s) noexcept { s.close(); }

// Ends the connection under a WebSocket, as Beast does with its own sockets: the server sends the end of the stream
// first; both sides read up to the peer's end, and then close. They wait for that end for at most 5 s; then the result
// is timed_out.
WEFT_API std::error_code tear_down(stream& s, bool server);

// The template parameters and arguments are the same as those of Beast's own teardown, which takes everything. Only
// then do the constraints decide between the two.
template <class Socket>
  requires std::derived_from<Socket, stream>
void teardown(boost::beast::role_type role, Socket& s, boost::system::error_code& ec) {
  weft::detail::assign_as_asio(ec, tear_down(s, weft::detail::is_server(role)), make_error_code(error::eof));
}

}  // namespace detail

class WEFT_API tcp_stream : public detail::stream {
 public:
  tcp_stream() noexcept = default;

  // Resolves the address and tries the addresses that it gets in turn. If none succeeds, the error is that of the last
  // one that can be reached from here. A limit or deadline is for all of it together (std::errc::timed_out); with a
  // context, connect gives up when ctx is cancelled (ctx.err()). Small writes are sent at once (set_nodelay).
  static tcp_stream connect(std::string_view address) { return connect_by(address, weft::detail::never_ns); }
  static tcp_stream connect(std::string_view address, std::error_code& ec) {
    return connect_by(address, weft::detail::never_ns, ec);
  }
  static tcp_stream connect(std::string_view address, weft::detail::any_point deadline) {
    return connect_by(address, deadline.ns());
  }
  static tcp_stream connect(std::string_view address, weft::detail::any_point deadline, std::error_code& ec) {
    return connect_by(address, deadline.ns(), ec);
  }
  template <class Rep, class Period>
  static tcp_stream connect(std::string_view address, const std::chrono::duration<Rep, Period>& limit) {
    return connect_by(address, from_now(weft::detail::to_ns(limit)));
  }
  template <class Rep, class Period>
  static tcp_stream connect(std::string_view address, const std::chrono::duration<Rep, Period>& limit,
                            std::error_code& ec) {
    return connect_by(address, from_now(weft::detail::to_ns(limit)), ec);
  }
  static tcp_stream connect(std::string_view address, const context& ctx);
  static tcp_stream connect(std::string_view address, const context& ctx, std::error_code& ec);
  static tcp_stream connect(const endpoint& to, weft::detail::any_point deadline = (time_point::max)());
  static tcp_stream connect(const endpoint& to, weft::detail::any_point deadline, std::error_code& ec);
  static tcp_stream connect(const endpoint& to, std::error_code& ec) { return connect(to, (time_point::max)(), ec); }
  static tcp_stream connect(const endpoint& to, const context& ctx);
  static tcp_stream connect(const endpoint& to, const context& ctx, std::error_code& ec);
  template <class Rep, class Period>
  static tcp_stream connect(const endpoint& to, const std::chrono::duration<Rep, Period>& limit) {
    return connect(to, point_in(limit));
  }
  template <class Rep, class Period>
  static tcp_stream connect(const endpoint& to, const std::chrono::duration<Rep, Period>& limit, std::error_code& ec) {
    return connect(to, point_in(limit), ec);
  }

  // Takes over a connected TCP socket that was made elsewhere, and makes it non-blocking. For a socket of another
  // family or type the error is wrong_protocol_type. On failure fd stays the caller's, but it may be non-blocking by
  // then.
  static tcp_stream adopt(int fd);
  static tcp_stream adopt(int fd, std::error_code& ec);

  // True (the default): small writes are sent at once. False: they wait for the acknowledgement of earlier ones.
  void set_nodelay(bool on);
  void set_nodelay(bool on, std::error_code& ec);

 private:
  friend class tcp_listener;
  using stream::stream;
  static tcp_stream connect_by(std::string_view address, std::int64_t deadline_ns);
  static tcp_stream connect_by(std::string_view address, std::int64_t deadline_ns, std::error_code& ec);
};

// A unix_listener uses only backlog. A udp_socket uses neither backlog nor reuse_address; with the latter two sockets
// could bind one port and take each other's datagrams. To share a port, all its sockets must ask for reuse_port.
struct listen_options {
  int backlog = 0;            // connections that may wait for accept(); 0: as many as the system allows
  bool reuse_address = true;  // bind even if old connections of this port are still being closed
  bool reuse_port = false;    // several sockets share the port, and the system distributes what arrives
  bool v6_only = false;       // "[::]:80" does not also take IPv4
};

class WEFT_API tcp_listener : public detail::socket {
 public:
  tcp_listener() noexcept = default;

  // Binds and listens. Port 0 picks a free one (local_endpoint().port()).
  static tcp_listener bind(std::string_view address, const listen_options& o = {});
  static tcp_listener bind(std::string_view address, std::error_code& ec) { return bind(address, {}, ec); }
  static tcp_listener bind(std::string_view address, const listen_options& o, std::error_code& ec);
  static tcp_listener bind(const endpoint& at, const listen_options& o = {});
  static tcp_listener bind(const endpoint& at, std::error_code& ec) { return bind(at, {}, ec); }
  static tcp_listener bind(const endpoint& at, const listen_options& o, std::error_code& ec);

  // As tcp_stream::adopt, for a socket that listens, such as one that was inherited. If it does not listen, the error
  // is invalid_argument.
  static tcp_listener adopt(int fd);
  static tcp_listener adopt(int fd, std::error_code& ec);

  // Waits for the next connection, at most until the read deadline. If the process has no descriptor left, it waits
  // until there is one. A connection that was given up before it was accepted is skipped.
  tcp_stream accept();
  tcp_stream accept(std::error_code& ec);

 private:
  using socket::socket;
};

class WEFT_API unix_stream : public detail::stream {
 public:
  unix_stream() noexcept = default;

  // Connects to a path of the file system, or to "@name" in Linux's abstract namespace. A path that is too long is
  // invalid_argument. Limits and contexts as with tcp_stream.
  static unix_stream connect(std::string_view path, weft::detail::any_point deadline = (time_point::max)());
  static unix_stream connect(std::string_view path, weft::detail::any_point deadline, std::error_code& ec);
  static unix_stream connect(std::string_view path, std::error_code& ec) {
    return connect(path, (time_point::max)(), ec);
  }
  static unix_stream connect(std::string_view path, const context& ctx);
  static unix_stream connect(std::string_view path, const context& ctx, std::error_code& ec);
  template <class Rep, class Period>
  static unix_stream connect(std::string_view path, const std::chrono::duration<Rep, Period>& limit) {
    return connect(path, point_in(limit));
  }
  template <class Rep, class Period>
  static unix_stream connect(std::string_view path, const std::chrono::duration<Rep, Period>& limit,
                             std::error_code& ec) {
    return connect(path, point_in(limit), ec);
  }

  // Returns the two ends of one connection.
  static std::pair<unix_stream, unix_stream> pair();
  static std::pair<unix_stream, unix_stream> pair(std::error_code& ec);

  // As tcp_stream::adopt, for a connected unix socket.
  static unix_stream adopt(int fd);
  static unix_stream adopt(int fd, std::error_code& ec);

 private:
  friend class unix_listener;
  using stream::stream;
};

// Closing a unix_listener removes the path that it has bound, unless another file has that name by then. Only the
// process that bound it does so: the child of a fork() leaves the path to its parent, also if it outlives it. A path
// that exists is address_in_use, even if nobody listens there any more; the program must remove a path that was left
// behind. "@name" is in the abstract namespace, which has no paths.
class WEFT_API unix_listener : public detail::socket {
 public:
  unix_listener() noexcept = default;
  // Binds and listens. Of the options it uses only backlog.
  static unix_listener bind(std::string_view path, const listen_options& o = {});
  static unix_listener bind(std::string_view path, std::error_code& ec) { return bind(path, {}, ec); }
  static unix_listener bind(std::string_view path, const listen_options& o, std::error_code& ec);

  // As tcp_listener::adopt. The path is not removed.
  static unix_listener adopt(int fd);
  static unix_listener adopt(int fd, std::error_code& ec);

  unix_stream accept();
  unix_stream accept(std::error_code& ec);

 private:
  using socket::socket;
};

// Datagrams. A datagram that does not fit into the buffer is cut.
class WEFT_API udp_socket : public detail::socket {
 public:
  udp_socket() noexcept = default;

  struct received {
    std::size_t size = 0;
    endpoint from;
  };

  // Binds. Of the options it uses reuse_port and v6_only.
  static udp_socket bind(std::string_view address, const listen_options& o = {});
  static udp_socket bind(std::string_view address, const listen_options& o, std::error_code& ec);
  static udp_socket bind(std::string_view address, std::error_code& ec) { return bind(address, {}, ec); }
  static udp_socket bind(const endpoint& at, const listen_options& o = {});
  static udp_socket bind(const endpoint& at, const listen_options& o, std::error_code& ec);
  static udp_socket bind(const endpoint& at, std::error_code& ec) { return bind(at, {}, ec); }

  // Makes a socket with a fixed peer, for send and receive. If the peer's machine reports that nobody is there, the
  // next call of either fails with connection_refused.
  static udp_socket connect(std::string_view address);
  static udp_socket connect(std::string_view address, std::error_code& ec);
  static udp_socket connect(const endpoint& to);
  static udp_socket connect(const endpoint& to, std::error_code& ec);

  // As tcp_stream::adopt, for a UDP socket, bound or connected.
  static udp_socket adopt(int fd);
  static udp_socket adopt(int fd, std::error_code& ec);

  // Waits for a datagram, at most until the read deadline. What does not fit into b is lost; the returned size does not
  // tell.
  received receive_from(mutable_buffer b);
  received receive_from(mutable_buffer b, std::error_code& ec);
  // Waits for room, at most until the write deadline, and sends all of b as one datagram.
  std::size_t send_to(const_buffer b, const endpoint& to);
  std::size_t send_to(const_buffer b, const endpoint& to, std::error_code& ec);

  // The same from and to the peer. send on a socket without a peer is destination_address_required.
  std::size_t receive(mutable_buffer b);
  std::size_t receive(mutable_buffer b, std::error_code& ec);
  std::size_t send(const_buffer b);
  std::size_t send(const_buffer b, std::error_code& ec);

  endpoint remote_endpoint() const;
  endpoint remote_endpoint(std::error_code& ec) const;

 private:
  using socket::socket;
};

}  // namespace weft::net

template <>
struct std::is_error_code_enum<weft::net::error> : std::true_type {};

template <>
struct std::hash<weft::net::endpoint> {
  std::size_t operator()(const weft::net::endpoint& e) const noexcept { return e.hash(); }
};
