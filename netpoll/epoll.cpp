#include "netpoll/netpoll.hpp"

#include "netpoll/poll_desc.hpp"
#include "netpoll/punctual.hpp"
#include "runtime/fatal.hpp"
#include "runtime/lock.hpp"
#include "runtime/own_descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace weft::rt {

namespace {

constexpr int batch = 128;

struct poller {
  lock mutex{lock_rank::leaf};
  atomic<bool> initialized{false};
  int epoll_fd = -1;
  int break_fd = -1;
  int alarm_fd = -1;
  // Not 0 while a break is under way: the eventfd was written and has not been drained yet.
  atomic<std::uint32_t> breaking{0};
  atomic<bool> no_pwait2{false};
  bool watches_forks = false;  // under mutex
  // The number of descriptors ever added. The kernel passes a poll_desc from the thread that adds it to the thread that
  // polls. C++ and its sanitizers do not see that, so adding increments this (release) and polling reads it (acquire).
  atomic<std::uint64_t> added{0};
  wake_lateness lateness;  // used by the thread that blocks, one at a time
};
constinit poller the_poller;

// A poll_desc lies below 2^48, so its address and a 16-bit tag share the 64 bits of epoll data. The descriptor's tag
// has 24 bits, of which 16 are compared: a stale event would have to be 65,536 uses old to be taken for a new one.
constexpr int pointer_bits = 48;
constexpr std::uint32_t tag_mask = 0xffff;

std::uint64_t pack(poll_desc* pd, std::uint32_t tag) noexcept {
  return reinterpret_cast<std::uint64_t>(pd) | static_cast<std::uint64_t>(tag & tag_mask) << pointer_bits;
}

// Ends the process, since no goroutine would ever be woken again: the poller's descriptors were closed, for example by
// code that closes all numbers above 2. Waits for a second first, because exec() or the end of the process may follow.
[[noreturn]] void descriptors_are_gone(const char* call, int fd, int error) noexcept {
  const nanos until = nanotime() + second;
  while (nanotime() < until) ::usleep(10'000);
  fatal("{}: {}: the poller's descriptor {} was closed by somebody else, or its number reused", call,
        strerrordesc_np(error), fd);
}

int wait_for_events(epoll_event* events, nanos delay) noexcept {
  poller& p = the_poller;
#ifdef SYS_epoll_pwait2
  // Only for a wait with a time limit: with one, even of 0, this call takes 100 ns more than epoll_pwait.
  if (delay > 0 && !p.no_pwait2.load(relaxed)) {
    timespec ts{static_cast<time_t>(delay / second), static_cast<long>(delay % second)};
    long n = ::syscall(SYS_epoll_pwait2, p.epoll_fd, events, batch, &ts, nullptr, 0);
    if (n >= 0) return static_cast<int>(n);
    if (errno == EINTR) return -EINTR;
    // The kernel does not know the call, or this process may not use it.
    p.no_pwait2.store(true, relaxed);
  }
#endif
  // Old kernels take whole milliseconds. Rounded up, so that nothing wakes early.
  int ms = delay < 0 ? -1 : static_cast<int>(std::min<nanos>((delay + millisecond - 1) / millisecond, INT_MAX));
  long n = ::syscall(SYS_epoll_pwait, p.epoll_fd, events, batch, ms, nullptr, 0);
  if (n >= 0) return static_cast<int>(n);
  if (errno != EINTR) descriptors_are_gone("epoll_pwait", p.epoll_fd, errno);
  return -EINTR;
}

// The kernel may end a poll late by up to 1/1000 of its length (1/200 if the thread is nice), whatever the thread's
// timer slack. So a long poll is asked to end early, and the rest of the time is asked for anew.
int wait_long_for_events(epoll_event* events, nanos delay) noexcept {
  constexpr nanos long_wait = 10 * millisecond;
  const nanos until = saturating_add(nanotime(), delay);
  for (;;) {
    const bool last = delay <= long_wait;
    int n = wait_for_events(events, last ? delay : delay - delay / 128);
    if (n != 0 || last) return n;
    delay = std::max<nanos>(until - nanotime(), 0);
  }
}

// If n < 0, a signal interrupted the poll and there are no events; the caller computes anew how long to sleep.
void handle_events(const epoll_event* events, int n, bool drain, g_list& woken) noexcept {
  poller& p = the_poller;
  if (n > 0) static_cast<void>(p.added.load(acquire));
  for (int i = 0; i < n; ++i) {
    const epoll_event& e = events[i];
    if (e.data.u64 == 0) {
      if (!drain) continue;  // left for the blocking poll that it is meant for
      std::uint64_t drained;
      [[maybe_unused]] ssize_t r = ::read(p.break_fd, &drained, sizeof drained);
      // Acquires: a thread that found `breaking` already set has published its work before, and we look at that next.
      p.breaking.exchange(0, seq_cst);
      continue;
    }
    auto* pd = reinterpret_cast<poll_desc*>(e.data.u64 & ((std::uint64_t{1} << pointer_bits) - 1));
    std::uint32_t tag = pd->tag();
    if ((tag & tag_mask) != e.data.u64 >> pointer_bits) continue;
    bool hangup = e.events & (EPOLLHUP | EPOLLERR);
    bool special = hangup || (e.events & (EPOLLRDHUP | EPOLLPRI));
    bool readable = special || (e.events & EPOLLIN);
    bool writable = hangup || (e.events & EPOLLOUT);
    poll_event(pd, tag, {readable, writable, special}, woken);
  }
}

void close_all() noexcept {
  poller& p = the_poller;
  for (int* fd : {&p.epoll_fd, &p.break_fd, &p.alarm_fd}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

// Returns 0 or an errno value. After an error some of the descriptors may be open.
int open_all() noexcept {
  poller& p = the_poller;
  if ((p.epoll_fd = beyond_standard_streams(::epoll_create1(EPOLL_CLOEXEC))) < 0) return errno;
  if ((p.break_fd = beyond_standard_streams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) < 0) return errno;
  if ((p.alarm_fd = beyond_standard_streams(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))) < 0)
    return errno;
  epoll_event want{};
  want.events = EPOLLIN;  // level-triggered: a break stays until a blocking poll drains it
  want.data.u64 = 0;
  if (::epoll_ctl(p.epoll_fd, EPOLL_CTL_ADD, p.break_fd, &want) != 0) return errno;
  p.breaking.store(0, relaxed);
  return poll_open_again();
}

// Runs in the child of a fork(). If the child shared the epoll instance with its parent, each would be told of the
// other's descriptors, and would take them out when it closes its copies. The child closes its copies of the poller's
// descriptors here, while their numbers are still known to be ours. The next netpoll_init makes new ones.
void leave_to_parent() noexcept {
  poller& p = the_poller;
  if (!p.initialized.load(relaxed)) return;
  p.initialized.store(false, relaxed);
  close_all();
}

}  // namespace

int netpoll_init() noexcept {
  poller& p = the_poller;
  if (p.initialized.load(acquire)) return 0;
  lock_guard hold(p.mutex);
  if (p.initialized.load(relaxed)) return 0;
  if (!p.watches_forks) {
    if (int e = ::pthread_atfork(nullptr, nullptr, leave_to_parent)) return e;
    p.watches_forks = true;
  }
  if (int e = open_all()) {
    close_all();
    return e;
  }
  p.initialized.store(true, release);
  return 0;
}

bool netpoll_initialized() noexcept { return the_poller.initialized.load(acquire); }

int netpoll_alarm() noexcept { return the_poller.alarm_fd; }

int netpoll_add(int fd, poll_desc* pd, std::uint32_t tag) noexcept {
  epoll_event want{};
  want.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
  want.data.u64 = pack(pd, tag);
  the_poller.added.fetch_add(1, release);
  return ::epoll_ctl(the_poller.epoll_fd, EPOLL_CTL_ADD, fd, &want) == 0 ? 0 : errno;
}

void netpoll_remove(int fd) noexcept {
  epoll_event none{};
  ::epoll_ctl(the_poller.epoll_fd, EPOLL_CTL_DEL, fd, &none);
}

void netpoll_break() noexcept {
  poller& p = the_poller;
  // Many breaks cost one wake-up: only the first one writes. seq_cst: pairs with the drain in handle_events.
  if (p.breaking.exchange(1, seq_cst) != 0) return;
  std::uint64_t one = 1;
  ssize_t n;
  do {
    n = ::write(p.break_fd, &one, sizeof one);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN && p.initialized.load(relaxed)) descriptors_are_gone("write", p.break_fd, errno);
}

void netpoll(nanos delay, g_list& woken) noexcept {
  if (!netpoll_initialized()) return;
  epoll_event events[batch];
  int n = delay > 0 ? wait_long_for_events(events, delay) : wait_for_events(events, delay);
  handle_events(events, n, delay != 0, woken);
}

void netpoll_punctually(nanos until, g_list& woken) noexcept {
  if (!netpoll_initialized()) return;
  wake_lateness& lateness = the_poller.lateness;
  epoll_event events[batch];
  nanos now = nanotime();
  nanos ahead = std::max<nanos>(until - now, 0);
  nanos wake = until - lateness.allowance(ahead);
  int n = wait_for_events(events, std::max<nanos>(wake - now, 0));
  if (n == 0 && wake > now) {
    now = nanotime();
    lateness.observe(now - wake);
  }
  // Watches the clock by polling, so that descriptors that become ready meanwhile, or a break, are not later than
  // usual.
  for (; n == 0 && now < until; now = nanotime()) n = wait_for_events(events, 0);
  handle_events(events, n, true, woken);
}
}  // namespace weft::rt
