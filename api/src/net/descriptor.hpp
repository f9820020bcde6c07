// The object behind every socket: the descriptor, the calls that use it, and how a call waits for it.
//
// Lifetime. The object is made with two lives: one for the socket object that refers to it (the handle), and one for
// the open descriptor. close() marks it closing and wakes every call inside; the last user closes the descriptor, which
// ends that life (retire). The handle's life ends with the handle. So a call that waits keeps the memory alive even if
// the socket object it was made through is moved or gone. The call therefore holds on to the descriptor object and
// never looks at the socket object again.
//
// A call has the same shape as in Go: take the turn; forget an old notification; try; if it would block, wait, and try
// again (`attempt`). A notification that comes between forgetting and waiting ends the wait at once, so none is lost.
#pragma once

#include "api/src/net/fd_mutex.hpp"
#include "api/src/net/socket_path.hpp"
#include "api/src/net/syscalls.hpp"
#include "netpoll/poll_desc.hpp"
#include "runtime/clock.hpp"
#include "sched/enter.hpp"
#include "weft/net.hpp"

#include <cerrno>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>
#include <system_error>

namespace weft::net {

inline std::error_code system_error_code(int error) noexcept { return {error, std::generic_category()}; }
std::error_code to_error_code(rt::poll_status s) noexcept;
std::error_code to_error_code(entry e) noexcept;

// The address that an error message names, if any. A call that fails copies it while it still holds the descriptor. It
// lies in the frame of each call that waits, so it is small.
using message_address = std::unique_ptr<const endpoint>;

// Throw std::system_error with the text "operation address: what the system says".
[[noreturn]] void fail(const char* operation, std::string_view where, const std::error_code& ec);
[[noreturn]] void fail(const char* operation, const message_address& where, const std::error_code& ec);
[[noreturn]] inline void fail(const char* operation, const endpoint& where, const std::error_code& ec) {
  fail(operation, where.to_string(), ec);
}

template <class Where>
void throw_if(const std::error_code& ec, const char* operation, const Where& where) {
  if (WEFT_UNLIKELY(static_cast<bool>(ec))) fail(operation, where, ec);
}

// Turns a call that takes an error code into one that throws.
template <class Where, class Call>
auto checked(const char* operation, const Where& where, Call call) {
  std::error_code ec;
  auto result = call(ec);
  throw_if(ec, operation, where);
  return result;
}

// The same for a call that also says which address the message is to name.
template <class Call>
auto checked(const char* operation, Call call) {
  std::error_code ec;
  message_address where;
  auto result = call(ec, &where);
  throw_if(ec, operation, where);
  return result;
}

// An IP address in little space. Family 0 stands for every other address.
sockaddr_in6 to_address(const endpoint& e) noexcept;
endpoint to_endpoint(const sockaddr_in6& a) noexcept;

// Every call enters the runtime once, so that a goroutine whose descriptors are always ready gives way when asked to.
inline void check_point() noexcept { rt::leave_runtime(rt::enter_runtime()); }

// Parks until pd may be ready. Throws std::logic_error on a plain thread without a running runtime: nobody would poll.
// A caller that holds a turn uses wait_in_turn instead.
rt::poll_status wait_for(rt::poll_desc* pd, rt::poll_mode mode);

// `deadline` is in ns of the monotonic clock; rt::forever means none.
void set_poll_deadline(rt::poll_desc* pd, rt::poll_mode mode, rt::nanos deadline);

namespace detail {

struct descriptor {
  // Registers fd, which must be non-blocking, and takes ownership of it. On failure (null with ec set, or
  // std::bad_alloc), make leaves fd to the caller, and make_or_close closes it.
  static descriptor* make(int fd, std::error_code& ec);
  static descriptor* make_or_close(int fd, std::error_code& ec);

  // Closes, and ends the handle's life.
  static void drop(descriptor* d) noexcept;

  // Closes, and waits for a limited time until the last user has left. False: it was closed before.
  bool close(bool keep_open) noexcept;

  // Returns the address that messages name: what `where` holds, and for a unix socket the path of its peer or its own.
  message_address name() const noexcept;

  fd_mutex mutex;
  int fd = -1;
  rt::poll_desc* pd = nullptr;

  // Written before the object is shared. Connected sockets: the peer's; bound ones: their own; unix sockets: none.
  sockaddr_in6 where{};
  std::unique_ptr<socket_path> path;  // of a unix listener

  // See receive.hpp.
  rt::atomic<bool> plain{false};  // a TCP socket that weft made and that nobody else knows
  bool drained = false;           // belongs to the call that has the read turn

  // Called with the result of leaving the mutex: the last user retires the object.
  void left(leave l) noexcept {
    if (WEFT_UNLIKELY(l == leave::last)) retire();
  }

 private:
  descriptor() = default;
  ~descriptor() = default;
  void retire() noexcept;
  void wait_until_retired() noexcept;
  void end_life() noexcept;

  rt::atomic<std::uint32_t> lives_{2};

  rt::lock retirement_{rt::lock_rank::sync};
  // under retirement_:
  bool retired_ = false;
  rt::G* closer_ = nullptr;  // waits until retired_ is set
  rt::wait_ticket closer_ticket_ = 0;
};

inline rt::poll_mode mode_of(side s) noexcept { return s == side::read ? rt::poll_mode::read : rt::poll_mode::write; }
inline side side_of(rt::poll_mode m) noexcept { return m == rt::poll_mode::read ? side::read : side::write; }

// Called in an inherited turn: ends the wait of the goroutine that had the turn, as it never comes back.
void forget_wait(descriptor& d, rt::poll_mode mode) noexcept;

// As wait_for, for a caller that holds a turn.
rt::poll_status wait_in_turn(descriptor& d, rt::poll_mode mode);

// Keeps a descriptor in use for a call that needs no turn. Converts to false, with ec set, if it was closed.
class [[nodiscard]] use {
 public:
  use(descriptor* d, std::error_code& ec, message_address* where = nullptr) noexcept : d_(d), ec_(ec), where_(where) {
    ec.clear();
    if (d_ && d_->mutex.enter()) return;
    ec = system_error_code(EBADF);
    d_ = nullptr;
  }
  ~use() {
    if (!d_) return;
    if (where_ && ec_) *where_ = d_->name();
    d_->left(d_->mutex.exit());
  }
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  explicit operator bool() const noexcept { return d_; }

 private:
  descriptor* d_;
  std::error_code& ec_;
  message_address* where_;
};

// Keeps a descriptor in use for a call that reads or writes. Waits for the call's turn, and passes the turn on at the
// end. Converts to false, with ec set, if the descriptor was closed, before or meanwhile.
class [[nodiscard]] turn {
 public:
  turn(descriptor* d, side s, std::error_code& ec, message_address* where = nullptr) noexcept
      : d_(d), side_(s), ec_(ec), where_(where) {
    check_point();
    ec.clear();
    entry e = d_ ? d_->mutex.lock(side_) : entry::closed_before;
    if (WEFT_LIKELY(e == entry::entered)) return;
    if (e == entry::inherited) {
      forget_wait(*d_, mode_of(side_));
      return;
    }
    ec = to_error_code(e);
    if (e == entry::closed_meanwhile) d_->left(d_->mutex.exit());
    d_ = nullptr;
  }
  ~turn() {
    if (!d_) return;
    if (WEFT_UNLIKELY(where_ && ec_)) *where_ = d_->name();
    d_->left(d_->mutex.unlock(side_));
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  explicit operator bool() const noexcept { return d_; }

 private:
  descriptor* d_;
  side side_;
  std::error_code& ec_;
  message_address* where_;
};

// True if s is ok. Otherwise ec says why not.
inline bool is_ok(rt::poll_status s, std::error_code& ec) noexcept {
  if (WEFT_LIKELY(s == rt::poll_status::ok)) return true;
  ec = to_error_code(s);
  return false;
}

// True if a call may begin, given the poll status s; otherwise ec says why not. A call that begins after its deadline
// fails even if the deadline's timer has not run yet.
inline bool may_begin(const descriptor& d, rt::poll_mode mode, rt::poll_status s, std::error_code& ec) noexcept {
  if (s == rt::poll_status::ok && rt::poll_time_left(d.pd, mode) == 0) s = rt::poll_status::timed_out;
  return is_ok(s, ec);
}

// Called in a turn, before the first attempt: closing or a passed deadline makes the call fail even if data is ready.
inline bool prepare(descriptor& d, rt::poll_mode mode, std::error_code& ec) noexcept {
  return may_begin(d, mode, rt::poll_reset(d.pd, mode), ec);
}

// Makes `call`, a system call from syscalls.hpp, and waits and tries again while it would block. Returns what it
// returned, or -1 with ec set.
template <class Call>
ssize_t attempt(descriptor& d, rt::poll_mode mode, std::error_code& ec, Call call) {
  for (;;) {
    ssize_t n = call();
    if (WEFT_LIKELY(n >= 0)) return n;
    if (n != -EAGAIN) {
      ec = system_error_code(static_cast<int>(-n));
      return -1;
    }
    // Where urgent data lies, TCP says EAGAIN if a signal is pending, though bytes follow of which the poller has told
    // already. relaxed: if it is yet to tell, that ends the wait.
    if (mode == rt::poll_mode::read && WEFT_UNLIKELY(d.pd->special.load(rt::relaxed)) && sys::has_data(d.fd)) continue;
    if (!is_ok(wait_in_turn(d, mode), ec)) return -1;
  }
}

// Sleeps for d. False: the caller is a foreign thread, and the run() in which it began to sleep is over, or none was
// running.
bool sleep_for(rt::nanos d);

// Waits for a connection on d. Returns a file descriptor for it, or -1 with ec set. While no file descriptors are to be
// had, it waits for one. *plain: whether d was plain when the connection was accepted, which has inherited its options.
int accept_descriptor(descriptor* d, sockaddr_storage* from, socklen_t* size, bool* plain, std::error_code& ec,
                      message_address* where);

// Returns what sys::local_name or sys::peer_name says of fd, or an endpoint without an address, with ec set.
endpoint endpoint_of(int fd, decltype(&sys::local_name) name, std::error_code& ec);

// The functions below return a registered socket, or null with ec set.

// Makes a socket of `type`, bound to `at`. A stream socket listens. `path` is the file that binding makes, to be
// removed when the socket is closed, and also on failure; or null.
descriptor* bind_socket(int type, const endpoint& at, const listen_options& o, std::unique_ptr<socket_path> path,
                        std::error_code& ec);

// Makes a socket connected to `to`. A deadline of rt::forever means none. If ctx is cancelled, ec is ctx.err().
descriptor* dial(int type, const endpoint& to, rt::nanos deadline, const context& ctx, std::error_code& ec);

// Takes over a socket that was made elsewhere, if it is what `k` says: a connected stream, a socket that listens, or
// one for datagrams, of a unix socket or of IP. On failure fd stays the caller's.
enum class socket_kind : std::uint8_t { tcp_stream, tcp_listener, unix_stream, unix_listener, udp };
descriptor* adopt_socket(socket_kind k, int fd, std::error_code& ec);

}  // namespace detail
}  // namespace weft::net
