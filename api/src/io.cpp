#include "weft/io.hpp"

#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"

#include <algorithm>
#include <cerrno>

namespace weft::io::detail {

namespace {

// A descriptor that is registered with the poller for the length of one call.
//
// The copy is registered, not the caller's own descriptor. Several calls may wait for one descriptor, which may also be
// one of weft's sockets. And if the caller closes it meanwhile, the registration does not vanish, nor does the
// destructor take away the registration of a descriptor that was given the same number since.
class registration {
 public:
  // Takes ownership of the copy, also on failure.
  registration(int copy, std::error_code& ec) : copy_(copy) {
    int error = 0;
    try {
      pd_ = rt::poll_open(copy, &error);
    } catch (...) {
      net::sys::close(copy);
      throw;
    }
    if (!pd_) ec = net::system_error_code(error);
  }
  ~registration() {
    if (pd_) {
      rt::g_list nobody;  // only this call could wait
      rt::poll_evict(pd_, nobody);
      rt::poll_free(pd_);
    }
    net::sys::close(copy_);
  }
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  rt::poll_desc* pd() const noexcept { return pd_; }
  int fd() const noexcept { return copy_; }

 private:
  const int copy_;
  rt::poll_desc* pd_ = nullptr;
};

// Waits without registering anything, for when there is no free descriptor number for a copy.
std::error_code look_now_and_then(int fd, bool writable, std::int64_t deadline) {
  constexpr rt::nanos longest_pause = 20 * rt::millisecond;
  for (rt::nanos pause = rt::millisecond;; pause = std::min(2 * pause, longest_pause)) {
    if (!net::detail::sleep_for(std::clamp<rt::nanos>(time_until(deadline), 0, pause))) {
      return net::to_error_code(rt::poll_status::closing);
    }
    if (time_until(deadline) <= 0) return net::system_error_code(ETIMEDOUT);
    const int ready = net::sys::poll_once(fd, writable);
    if (ready < 0) return net::system_error_code(-ready);
    if (ready > 0) return {};
  }
}

}  // namespace

std::error_code wait_fd(int fd, bool writable, std::int64_t deadline_ns) {
  net::check_point();
  int ready = net::sys::poll_once(fd, writable);
  if (ready < 0) return net::system_error_code(-ready);
  if (deadline_ns != weft::detail::never_ns && deadline_ns <= rt::nanotime()) return net::system_error_code(ETIMEDOUT);
  if (ready > 0) return {};

  rt::throw_if_not_running("waiting for a descriptor");
  const int copy = net::sys::duplicate(fd);
  if (copy == -EMFILE) return look_now_and_then(fd, writable, deadline_ns);
  if (copy < 0) return net::system_error_code(-copy);
  std::error_code ec;
  registration r(copy, ec);
  if (ec) return ec;
  rt::poll_mode mode = writable ? rt::poll_mode::write : rt::poll_mode::read;
  if (deadline_ns != weft::detail::never_ns) net::set_poll_deadline(r.pd(), mode, deadline_ns);
  for (;;) {
    rt::poll_status s = rt::poll_reset(r.pd(), mode);
    if (s == rt::poll_status::ok) {
      ready = net::sys::poll_once(r.fd(), writable);
      // It may have been woken in time, and have gone on late; or the deadline's timer is late.
      if (ready > 0 && rt::poll_time_left(r.pd(), mode) == 0) return net::system_error_code(ETIMEDOUT);
      if (ready > 0) return {};
      if (ready < 0) return net::system_error_code(-ready);
      s = net::wait_for(r.pd(), mode);
    }
    if (s != rt::poll_status::ok) return net::to_error_code(s);
  }
}

}  // namespace weft::io::detail
