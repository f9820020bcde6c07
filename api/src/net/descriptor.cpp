#include "api/src/net/descriptor.hpp"

#include "api/src/net/syscalls.hpp"
#include "sched/io.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/timing.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace weft::net {

std::error_code to_error_code(rt::poll_status s) noexcept {
  switch (s) {
    case rt::poll_status::ok: break;
    case rt::poll_status::closing: return system_error_code(ECANCELED);
    case rt::poll_status::timed_out: return system_error_code(ETIMEDOUT);
  }
  return {};
}

std::error_code to_error_code(entry e) noexcept {
  switch (e) {
    case entry::entered:
    case entry::inherited: break;
    case entry::closed_before: return system_error_code(EBADF);
    case entry::closed_meanwhile: return system_error_code(ECANCELED);
  }
  return {};
}

void fail(const char* operation, std::string_view where, const std::error_code& ec) {
  throw std::system_error(ec, where.empty() ? std::string(operation) : fmt::format("{} {}", operation, where));
}

void fail(const char* operation, const message_address& where, const std::error_code& ec) {
  fail(operation, where ? where->to_string() : std::string(), ec);
}

sockaddr_in6 to_address(const endpoint& e) noexcept {
  sockaddr_in6 a{};
  if (!e.is_unix()) std::memcpy(&a, e.data(), std::min(e.size(), sizeof a));
  return a;
}

endpoint to_endpoint(const sockaddr_in6& a) noexcept {
  return endpoint::from_native(&a, a.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof a);
}

rt::poll_status wait_for(rt::poll_desc* pd, rt::poll_mode mode) {
  rt::runtime_scope scope;
  if (WEFT_UNLIKELY(!scope.m())) rt::throw_if_not_running("waiting for a descriptor");
  rt::poll_status s;
  scope.resumed_on(rt::io_wait(scope.m(), pd, mode, &s));
  return s;
}

void set_poll_deadline(rt::poll_desc* pd, rt::poll_mode mode, rt::nanos deadline) {
  rt::nanos when = 0;
  if (deadline != rt::forever) when = deadline <= rt::nanotime() ? -1 : deadline;
  rt::runtime_scope scope;
  if (WEFT_UNLIKELY(!scope.m())) rt::throw_if_not_running("setting a deadline");
  rt::set_io_deadline(scope.m(), pd, mode, when);
}

namespace detail {

namespace {

// A closer waits no longer than this for calls to leave: a goroutine that its run() left behind never leaves, unless it
// waits there (fd_mutex, "left behind").
constexpr rt::nanos closer_patience = rt::second;

}  // namespace

void forget_wait(descriptor& d, rt::poll_mode mode) noexcept { static_cast<void>(rt::poll_try_again(d.pd, mode)); }

// A foreign thread is never left behind, so its turn needs no mark. wait_for also handles a runtime that does not run.
rt::poll_status wait_in_turn(descriptor& d, rt::poll_mode mode) {
  rt::M* m = rt::this_m();
  if (WEFT_UNLIKELY(!m)) return wait_for(d.pd, mode);
  d.mutex.go_away(side_of(mode), m->g);
  rt::runtime_scope scope;
  rt::poll_status s;
  scope.resumed_on(rt::io_wait(scope.m(), d.pd, mode, &s));
  d.mutex.come_back(side_of(mode));
  return s;
}

descriptor* descriptor::make(int fd, std::error_code& ec) {
  std::unique_ptr<descriptor, decltype([](descriptor* d) { delete d; })> d(new descriptor);
  int error = 0;
  d->fd = fd;
  d->pd = rt::poll_open(fd, &error);
  if (d->pd) return d.release();
  ec = system_error_code(error);
  return nullptr;
}

descriptor* descriptor::make_or_close(int fd, std::error_code& ec) {
  try {
    if (descriptor* d = make(fd, ec)) return d;
  } catch (...) {
    sys::close(fd);
    throw;
  }
  sys::close(fd);
  return nullptr;
}

void descriptor::drop(descriptor* d) noexcept {
  d->close(false);
  d->end_life();
}

// A goroutine may be stopped for good as it enters the runtime, at the end of its run(). So it enters before the socket
// is marked closed, and not again before the socket is closed, or whoever leaves last will close it.
bool descriptor::close(bool keep_open) noexcept {
  bool last;
  {
    rt::runtime_scope scope;
    if (!mutex.close(keep_open)) return false;
    if (path && !keep_open) path->remove();
    rt::g_list woken;
    rt::poll_evict(pd, woken);
    while (rt::G* g = woken.pop_front()) {
      if (g->claim(rt::no_ticket)) rt::ready(g);
    }
    lives_.fetch_add(1, rt::relaxed);  // the closer's own, while it waits
    last = mutex.exit() == leave::last;
  }
  if (last) {
    retire();
  } else {
    wait_until_retired();
  }
  end_life();
  return true;
}

// The end of a connection that was accepted has the listener's path, and its peer has none.
message_address descriptor::name() const noexcept {
  const auto copy = [](const endpoint& e) { return message_address(new (std::nothrow) endpoint(e)); };
  if (where.sin6_family != 0) return copy(to_endpoint(where));
  for (auto* ask : {sys::peer_name, sys::local_name}) {
    std::error_code ec;
    const endpoint e = endpoint_of(fd, ask, ec);
    if (!ec && e.size() > sizeof(sa_family_t)) return copy(e);
  }
  return nullptr;
}

// Called when the last user has left.
void descriptor::retire() noexcept {
  rt::poll_free(pd);
  if (!mutex.kept_open()) sys::close(fd);
  {
    rt::runtime_scope scope;
    rt::G* waiting = nullptr;
    {
      rt::lock_guard hold(retirement_);
      retired_ = true;
      if (closer_ && closer_->claim(closer_ticket_)) waiting = closer_;
    }
    if (waiting) rt::ready(waiting);
  }
  end_life();
}

void descriptor::wait_until_retired() noexcept {
  rt::runtime_scope scope;
  rt::nanos limit = rt::nanotime() + closer_patience;
  retirement_.acquire_lock();
  if (retired_) {
    retirement_.release_lock();
    return;
  }
  closer_ = scope.g();
  closer_ticket_ = closer_->begin_wait();
  try {
    bool timed_out;
    scope.resumed_on(
        rt::park_until(scope.m(), closer_ticket_, retirement_, rt::wait_reason::io_turn, limit, &timed_out));
    if (!timed_out) return;
    rt::lock_guard hold(retirement_);
    closer_ = nullptr;
  } catch (const std::bad_alloc&) {
    closer_ = nullptr;
    retirement_.release_lock();
  }
}

// acq_rel: the thread that deletes the object sees the end of everything that others did with it.
void descriptor::end_life() noexcept {
  if (lives_.fetch_sub(1, rt::acq_rel) == 1) delete this;
}

}  // namespace detail
}  // namespace weft::net
