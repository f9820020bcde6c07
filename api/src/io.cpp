#include "weft/io.hpp"

#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "sched/lifecycle.hpp"

namespace weft::io::detail {

namespace {

// A descriptor that the poller knows for the length of one call.
//
// A copy is registered, not the caller's own: several calls may wait for one descriptor, which may be a socket of
// weft's besides, and if the caller closes it meanwhile, neither does the registration vanish nor do we take away that
// of whoever is given the number next. Without a number to be had for the copy, the caller's own must do.
class registration {
 public:
  registration(int callers, std::error_code& ec) : copy_(net::sys::duplicate(callers)) {
    int error = 0;
    try {
      pd_ = rt::poll_open(fd(callers), &error);
    } catch (...) {
      if (copy_ >= 0) net::sys::close(copy_);
      throw;
    }
    // The caller's own is registered already: it is the number for a copy that is missing.
    if (!pd_) ec = net::system_error_code(error == EEXIST && copy_ < 0 ? -copy_ : error);
  }
  ~registration() {
    if (pd_) {
      rt::g_list nobody;  // this call was the only one to wait
      rt::poll_evict(pd_, nobody);
      rt::poll_free(pd_);
    }
    if (copy_ >= 0) net::sys::close(copy_);
  }
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  rt::poll_desc* pd() const noexcept { return pd_; }
  int fd(int callers) const noexcept { return copy_ >= 0 ? copy_ : callers; }

 private:
  int copy_;
  rt::poll_desc* pd_ = nullptr;
};

}  // namespace

std::error_code wait_fd(int fd, bool writable, std::int64_t deadline_ns) {
  net::check_point();
  int ready = net::sys::poll_once(fd, writable);
  if (ready < 0) return net::system_error_code(-ready);
  if (deadline_ns != weft::detail::never_ns && deadline_ns <= rt::nanotime()) return net::system_error_code(ETIMEDOUT);
  if (ready > 0) return {};

  rt::throw_if_not_running("waiting for a descriptor");
  std::error_code ec;
  registration r(fd, ec);
  if (ec) return ec;
  rt::poll_mode mode = writable ? rt::poll_mode::write : rt::poll_mode::read;
  if (deadline_ns != weft::detail::never_ns) net::set_poll_deadline(r.pd(), mode, deadline_ns);
  for (;;) {
    rt::poll_status s = rt::poll_reset(r.pd(), mode);
    if (s == rt::poll_status::ok) {
      ready = net::sys::poll_once(r.fd(fd), writable);
      if (ready > 0) return {};
      if (ready < 0) return net::system_error_code(-ready);
      s = net::wait_for(r.pd(), mode);
    }
    if (s != rt::poll_status::ok) return net::to_error_code(s);
  }
}

}  // namespace weft::io::detail
