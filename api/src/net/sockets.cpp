// What TCP and unix sockets share: listening, accepting, connecting.

#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"
#include "sched/timing.hpp"
#include "weft/context.hpp"
#include "weft/select.hpp"
#include "weft/task.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

namespace weft::net::detail {

namespace {

constexpr int largest_backlog = 65535;  // the system cuts it to net.core.somaxconn
constexpr int self_connect_tries = 3;
constexpr rt::nanos first_pause = rt::millisecond, longest_pause = 20 * rt::millisecond;

int family_of(const endpoint& e) noexcept { return e.is_v4() ? AF_INET : e.is_v6() ? AF_INET6 : AF_UNIX; }

}  // namespace

bool sleep_for(rt::nanos d) {
  rt::runtime_scope scope;
  if (scope.m()) {
    scope.resumed_on(rt::sleep_until(scope.m(), {rt::nanotime() + d}));
    return true;
  }
  const std::uint64_t run = number_of_run();
  timespec pause{static_cast<time_t>(d / rt::second), static_cast<long>(d % rt::second)};
  nanosleep(&pause, nullptr);
  return run != 0 && number_of_run() == run;
}

namespace {

bool sleep_in_turn(descriptor& d, side s, rt::nanos pause) {
  rt::M* m = rt::this_m();
  if (!m) return sleep_for(pause);
  d.mutex.go_away(s, m->g);
  rt::runtime_scope scope;
  try {
    scope.resumed_on(rt::sleep_until(scope.m(), {rt::nanotime() + pause}));
  } catch (...) {
    d.mutex.come_back(s);
    throw;
  }
  d.mutex.come_back(s);
  return true;
}

// Ends the wait for a connection when ctx is cancelled. This takes a goroutine of its own, not a callback of
// ctx.stop_token(): every call into the runtime may suspend its caller, and a callback that is suspended half-way is
// more than std::stop_callback can handle.
class cancellation_watch {
 public:
  cancellation_watch(const context& ctx, rt::poll_desc* pd) {
    recv_chan<void> cancelled = ctx.done();
    if (cancelled.is_nil()) return;
    over_ = chan<void>();
    watcher_ = spawn([cancelled, pd, over = over_] {
      select(on_recv(cancelled, [pd] { set_poll_deadline(pd, rt::poll_mode::write, 0); }), on_recv(over));
    });
  }
  ~cancellation_watch() {
    if (!over_.is_nil()) over_.close();  // the destructor of watcher_ then waits for the task
  }
  cancellation_watch(const cancellation_watch&) = delete;
  cancellation_watch& operator=(const cancellation_watch&) = delete;

 private:
  task<void> watcher_;
  chan<void> over_{nil};
};

// A TCP socket that connects to a local port without a listener can be connected to itself, if that port is also the
// ephemeral port it is given.
bool connected_to_itself(int fd, endpoint* peer) noexcept {
  sockaddr_storage local, remote;
  socklen_t local_size, remote_size;
  if (sys::local_name(fd, &local, &local_size) < 0 || sys::peer_name(fd, &remote, &remote_size) < 0) return false;
  *peer = endpoint::from_native(&remote, remote_size);
  return endpoint::from_native(&local, local_size) == *peer;
}

// Waits until the connection is established or has failed. Returns 0 or an errno value.
int finish_connect(descriptor& d) {
  for (;;) {
    rt::poll_status s = wait_for(d.pd, rt::poll_mode::write);
    if (s == rt::poll_status::closing) return ECANCELED;
    if (s == rt::poll_status::timed_out) return ETIMEDOUT;
    int error = sys::pending_error(d.fd);
    if (error == EINPROGRESS || error == EALREADY || error == EINTR) continue;
    if (error != 0 && error != EISCONN) return error;
    // The wake-up may say nothing: only a peer's name tells that the connection is established.
    sockaddr_storage peer;
    socklen_t size;
    if (sys::peer_name(d.fd, &peer, &size) == 0) return 0;
  }
}

// Connects a unix socket, and tries again now and then while it says EAGAIN: the listener's queue is full, and no event
// tells when that changes.
int connect_patiently(int fd, const endpoint& to, rt::nanos deadline, const context& ctx) {
  int n = sys::connect(fd, to.data(), to.size());
  for (rt::nanos pause = first_pause; n == -EAGAIN && !ctx.err(); pause = std::min(2 * pause, longest_pause)) {
    const rt::nanos left = time_until(deadline);
    if (left <= 0) break;
    n = sleep_for(std::min(pause, left)) ? sys::connect(fd, to.data(), to.size()) : -ECANCELED;
  }
  return n;
}

descriptor* dial_once(int type, const endpoint& to, rt::nanos deadline, const context& ctx, std::error_code& ec) {
  int fd = sys::open_socket(family_of(to), type);
  if (fd < 0) {
    ec = system_error_code(-fd);
    return nullptr;
  }
  int n;
  try {
    n = to.is_unix() ? connect_patiently(fd, to, deadline, ctx) : sys::connect(fd, to.data(), to.size());
  } catch (...) {
    sys::close(fd);
    throw;
  }
  bool pending = n == -EINPROGRESS || n == -EINTR || n == -EALREADY;
  if (n < 0 && n != -EISCONN && !pending) {
    sys::close(fd);
    if (n != -EAGAIN) {
      ec = system_error_code(-n);
    } else if (!to.is_unix()) {
      ec = system_error_code(EADDRNOTAVAIL);  // no local port is free: that is what TCP says, and UDP says EAGAIN
    } else {
      ec = ctx.err() ? ctx.err() : system_error_code(ETIMEDOUT);
    }
    return nullptr;
  }
  // Registered only now: before connect(), the poller would report the socket as hung up.
  descriptor* d = descriptor::make_or_close(fd, ec);
  if (!d || !pending) return d;
  try {
    if (deadline != rt::forever) set_poll_deadline(d->pd, rt::poll_mode::write, deadline);
    int error;
    {
      cancellation_watch watch(ctx, d->pd);
      error = finish_connect(*d);
    }
    if (error == 0) {
      set_poll_deadline(d->pd, rt::poll_mode::write, rt::forever);
      return d;
    }
    ec = error == ETIMEDOUT && ctx.err() ? ctx.err() : system_error_code(error);
  } catch (...) {
    descriptor::drop(d);
    throw;
  }
  descriptor::drop(d);
  return nullptr;
}

int set_listen_options(int fd, const endpoint& at, const listen_options& o) noexcept {
  if (at.is_unix()) return 0;
  if (int n = sys::set_option(fd, SOL_SOCKET, SO_REUSEADDR, o.reuse_address); n < 0) return n;
  if (o.reuse_port) {
    if (int n = sys::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); n < 0) return n;
  }
  return at.is_v6() ? sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, o.v6_only) : 0;
}

}  // namespace

descriptor* bind_socket(int type, const endpoint& at, const listen_options& o, std::unique_ptr<socket_path> path,
                        std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  struct made_in_vain {
    socket_path* path = nullptr;
    ~made_in_vain() {
      if (path) path->remove();
    }
  } made;
  int fd = sys::open_socket(family_of(at), type);
  if (fd < 0) {
    ec = system_error_code(-fd);
    return nullptr;
  }
  int n = set_listen_options(fd, at, o);
  if (n == 0) n = sys::bind(fd, at.data(), at.size());
  if (n == 0 && path) {
    path->was_bound();
    made.path = path.get();
  }
  if (n == 0 && type == SOCK_STREAM) {
    n = sys::listen(fd, o.backlog > 0 ? std::min(o.backlog, largest_backlog) : largest_backlog);
  }
  if (n < 0) {
    sys::close(fd);
    ec = system_error_code(-n);
    return nullptr;
  }
  descriptor* d = descriptor::make_or_close(fd, ec);
  if (!d) return nullptr;
  made.path = nullptr;
  d->path = std::move(path);
  sockaddr_storage own;
  socklen_t size;
  if (sys::local_name(fd, &own, &size) == 0) d->where = to_address(endpoint::from_native(&own, size));
  return d;
}

int accept_descriptor(descriptor* d, sockaddr_storage* from, socklen_t* size, bool* plain, std::error_code& ec,
                      message_address* where) {
  rt::throw_if_not_running("a socket");
  turn t(d, side::read, ec, where);
  if (!t || !prepare(*d, rt::poll_mode::read, ec)) return -1;
  rt::nanos pause = first_pause;
  for (;;) {
    int fd = sys::accept(d->fd, from, size);
    if (fd >= 0) {
      *plain = d->plain.load(rt::relaxed);
      return fd;
    }
    switch (-fd) {
      case EAGAIN: {
        rt::poll_status s = wait_in_turn(*d, rt::poll_mode::read);
        if (s == rt::poll_status::ok) continue;
        ec = to_error_code(s);
        return -1;
      }
      // The connection was given up while it was queued, or the network reported an error for it: take the next one.
      case ECONNABORTED:
      case EPROTO:
      case ENOPROTOOPT:
      case EHOSTDOWN:
      case ENONET:
      case EHOSTUNREACH:
      case ENETDOWN:
      case ENETUNREACH: continue;
      // Nothing tells when a descriptor is free again, so look now and then.
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM: {
        rt::poll_status s;
        if (sys::poll_once(d->fd, false) == 0) {  // no connection yet: the system complains before it looks for one
          s = wait_in_turn(*d, rt::poll_mode::read);
        } else {
          const rt::nanos left = rt::poll_time_left(d->pd, rt::poll_mode::read);
          s = sleep_in_turn(*d, side::read, std::min(pause, left)) ? rt::poll_check(d->pd, rt::poll_mode::read)
                                                                   : rt::poll_status::closing;
          pause = std::min(2 * pause, longest_pause);
        }
        if (s == rt::poll_status::ok) continue;
        ec = to_error_code(s);
        return -1;
      }
      default: ec = system_error_code(-fd); return -1;
    }
  }
}

descriptor* dial(int type, const endpoint& to, rt::nanos deadline, const context& ctx, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  for (int i = 1;; ++i) {
    ec = ctx.err();
    if (!ec && deadline != rt::forever && deadline <= rt::nanotime()) ec = system_error_code(ETIMEDOUT);
    if (ec) return nullptr;
    descriptor* d = dial_once(type, to, deadline, ctx, ec);
    if (!d) return nullptr;
    endpoint peer = to;  // is another address if `to` is a wildcard
    if (type == SOCK_STREAM && !to.is_unix() && connected_to_itself(d->fd, &peer)) {
      descriptor::drop(d);
      if (i < self_connect_tries) continue;
      ec = system_error_code(ECONNREFUSED);
      return nullptr;
    }
    d->where = to_address(peer);
    return d;
  }
}

endpoint endpoint_of(int fd, decltype(&sys::local_name) name, std::error_code& ec) {
  sockaddr_storage found;
  socklen_t size;
  if (int n = name(fd, &found, &size); n < 0) {
    ec = system_error_code(-n);
    return {};
  }
  return endpoint::from_native(&found, size);
}

namespace {

// Finds the address that messages about fd name: the peer's if it is connected, otherwise its own. Returns 0, or
// -EPROTOTYPE if fd is of another family or type, -EINVAL if it should listen and does not, or what the system says of
// it.
int name_if_it_is(socket_kind k, int fd, sockaddr_storage* where, socklen_t* size) noexcept {
  const bool is_unix = k == socket_kind::unix_stream || k == socket_kind::unix_listener;
  const bool listens = k == socket_kind::tcp_listener || k == socket_kind::unix_listener;
  int family, type, accepts;
  if (int n = sys::option(fd, SO_DOMAIN, &family); n < 0) return n;
  if (int n = sys::option(fd, SO_TYPE, &type); n < 0) return n;
  const bool fits = is_unix ? family == AF_UNIX : family == AF_INET || family == AF_INET6;
  if (!fits || type != (k == socket_kind::udp ? SOCK_DGRAM : SOCK_STREAM)) return -EPROTOTYPE;
  if (listens) {
    if (int n = sys::option(fd, SO_ACCEPTCONN, &accepts); n < 0) return n;
    return accepts != 0 ? sys::local_name(fd, where, size) : -EINVAL;
  }
  const int n = sys::peer_name(fd, where, size);
  return n < 0 && k == socket_kind::udp ? sys::local_name(fd, where, size) : n;
}

}  // namespace

descriptor* adopt_socket(socket_kind k, int fd, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  sockaddr_storage where;
  socklen_t size = 0;
  int n = name_if_it_is(k, fd, &where, &size);
  if (n == 0) n = sys::set_nonblocking(fd);
  if (n < 0) {
    ec = system_error_code(-n);
    return nullptr;
  }
  descriptor* d = descriptor::make(fd, ec);
  if (d) d->where = to_address(endpoint::from_native(&where, size));
  return d;
}

}  // namespace weft::net::detail
