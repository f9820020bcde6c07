// What stands behind every socket object: the descriptor, who uses it, and how a call waits for it.
//
// The life of one. It is made with two lives: the object that refers to it (the handle) and the open descriptor.
// close() marks it closing and wakes everybody inside; the last user closes the descriptor, which ends that life
// (retire). The handle's life ends with the handle. So calls that wait keep the memory although the object they were
// made through is moved or gone; they therefore hold on to the descriptor and never look at that object again.
//
// The shape of a call, Go's: take the turn; forget an old notification; try; if it would block, wait, and try again
// (`attempt`). A notification that comes between forgetting and waiting ends the wait at once, so none is lost.
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

// The address that a message names; family 0: none. A call that fails copies it while it still holds the descriptor.
using message_address = sockaddr_in6;

// "operation address: what the system says"
[[noreturn]] void fail(const char* operation, std::string_view where, const std::error_code& ec);
[[noreturn]] void fail(const char* operation, const message_address& where, const std::error_code& ec);
[[noreturn]] inline void fail(const char* operation, const endpoint& where, const std::error_code& ec) {
  fail(operation, where.to_string(), ec);
}

template <class Where>
void throw_if(const std::error_code& ec, const char* operation, const Where& where) {
  if (WEFT_UNLIKELY(static_cast<bool>(ec))) fail(operation, where, ec);
}

// The form that throws, of a call that takes an error code.
template <class Where, class Call>
auto checked(const char* operation, const Where& where, Call call) {
  std::error_code ec;
  auto result = call(ec);
  throw_if(ec, operation, where);
  return result;
}

message_address to_address(const endpoint& e) noexcept;
endpoint to_endpoint(const message_address& a) noexcept;

// Every call comes by the runtime once, so that a goroutine whose descriptors are always ready gives way when asked.
inline void check_point() noexcept { rt::leave_runtime(rt::enter_runtime()); }

// Parks until pd may be ready. Throws std::logic_error on a plain thread without a running runtime: nobody would poll.
// Whoever has a turn uses wait_in_turn.
rt::poll_status wait_for(rt::poll_desc* pd, rt::poll_mode mode);

// Ns of the monotonic clock; rt::forever: none.
void set_poll_deadline(rt::poll_desc* pd, rt::poll_mode mode, rt::nanos deadline);

namespace detail {

struct descriptor {
  // Registers fd, which must be non-blocking, and takes it over. On failure (null, ec set, or std::bad_alloc) fd stays
  // the caller's; the other form closes it.
  static descriptor* make(int fd, std::error_code& ec);
  static descriptor* make_or_close(int fd, std::error_code& ec);

  // The handle's life ends. Closes.
  static void drop(descriptor* d) noexcept;

  // False: was closed before. Waits until the last user has left.
  bool close(bool keep_open) noexcept;

  fd_mutex mutex;
  int fd = -1;
  rt::poll_desc* pd = nullptr;

  // Written before the object is shared. Streams: the peer's; listeners: their own; unix sockets: none.
  message_address where{};
  std::unique_ptr<socket_path> path;  // of a unix listener

  // receive.hpp
  rt::atomic<bool> plain{false};  // a TCP socket that weft has made, and nobody else knows
  bool drained = false;           // whose turn it is to read

  // After a leaving call.
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
  rt::G* closer_ = nullptr;  // waits until it is
  rt::wait_ticket closer_ticket_ = 0;
};

inline rt::poll_mode mode_of(side s) noexcept { return s == side::read ? rt::poll_mode::read : rt::poll_mode::write; }
inline side side_of(rt::poll_mode m) noexcept { return m == rt::poll_mode::read ? side::read : side::write; }

// In a turn that was inherited: whoever waited there never comes back.
void forget_wait(descriptor& d, rt::poll_mode mode) noexcept;

// wait_for, in a turn.
rt::poll_status wait_in_turn(descriptor& d, rt::poll_mode mode);

// A call that needs no turn. `operator bool`: inside.
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
    if (where_ && ec_) *where_ = d_->where;
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

// A call that reads or writes, when it is its turn.
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
    if (WEFT_UNLIKELY(where_ && ec_)) *where_ = d_->where;
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

// Else ec says why.
inline bool is_ok(rt::poll_status s, std::error_code& ec) noexcept {
  if (WEFT_LIKELY(s == rt::poll_status::ok)) return true;
  ec = to_error_code(s);
  return false;
}

// A call that begins after its deadline fails, also if the deadline's timer has not run yet.
inline bool may_begin(const descriptor& d, rt::poll_mode mode, rt::poll_status s, std::error_code& ec) noexcept {
  if (s == rt::poll_status::ok && rt::poll_time_left(d.pd, mode) == 0) s = rt::poll_status::timed_out;
  return is_ok(s, ec);
}

// Inside a turn, before the first attempt: a passed deadline and closing count even if data is ready.
inline bool prepare(descriptor& d, rt::poll_mode mode, std::error_code& ec) noexcept {
  return may_begin(d, mode, rt::poll_reset(d.pd, mode), ec);
}

// `call` is a system call from syscalls.hpp. Returns what it returned, or -1 with ec set.
template <class Call>
ssize_t attempt(descriptor& d, rt::poll_mode mode, std::error_code& ec, Call call) {
  for (;;) {
    ssize_t n = call();
    if (WEFT_LIKELY(n >= 0)) return n;
    if (n != -EAGAIN) {
      ec = system_error_code(static_cast<int>(-n));
      return -1;
    }
    if (!is_ok(wait_in_turn(d, mode), ec)) return -1;
  }
}

// False: on a thread, and run() has ended.
bool sleep_for(rt::nanos d);

// Waits for a connection on d. A descriptor for it, or -1 with ec set. Waits while there are none to be had.
int accept_descriptor(descriptor* d, sockaddr_storage* from, socklen_t* size, std::error_code& ec,
                      message_address* where);

// What sys::local_name or sys::peer_name says of fd; or none, with ec set.
endpoint endpoint_of(int fd, decltype(&sys::local_name) name, std::error_code& ec);

// The rest return a registered socket, or null with ec set.

// Of `type`, bound to `at`; streams listen. `path`: what that makes, to be removed at last, also on failure; or null.
descriptor* bind_socket(int type, const endpoint& at, const listen_options& o, std::unique_ptr<socket_path> path,
                        std::error_code& ec);

// Connected. A deadline of rt::forever: none. When ctx is cancelled it ends with ctx.err().
descriptor* dial(int type, const endpoint& to, rt::nanos deadline, const context& ctx, std::error_code& ec);

// From a connected socket made elsewhere, unix or TCP. On failure it stays the caller's.
enum class stream_kind : bool { tcp, unix_domain };
descriptor* adopt_stream(stream_kind k, int fd, std::error_code& ec);

}  // namespace detail
}  // namespace weft::net
