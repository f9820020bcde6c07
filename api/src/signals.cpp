// Signals as values on channels.
//
// A handler may do next to nothing, so it writes the signal's number into a pipe. A plain thread reads the number there
// and gives it to every channel that asked for it. It is a thread and not a goroutine, since it goes on between two
// run()s. The pipe is made once in a process and never closed, since a handler may be about to write to it at any time.
// The thread lives while a channel asks for a signal; a zero in the pipe ends one thread.
//
// The child of a fork() has the handlers and the channels, but neither the thread nor a pipe, and drops the signals
// that come. It gets both when a channel asks for a signal there. So does a process in which somebody closes
// descriptors that are not theirs, once the thread has noticed; a signal that comes before that goes to whatever file
// has the number by then.

#include "api/src/signals.hpp"

#include "api/src/net/descriptor.hpp"
#include "runtime/atomic.hpp"
#include "runtime/never_destroyed.hpp"
#include "runtime/own_descriptor.hpp"
#include "runtime/thread.hpp"
#include "weft/io.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weft::io {

namespace {

constexpr int signals_end = 65;
constexpr std::size_t buffered = 16;
constexpr unsigned char quit_mark = 0, changed_mark = 255;

using signal_set = std::bitset<signals_end>;

struct registration {
  chan<int> to;
  signal_set wanted;
  signal_set due;  // arrived, but not sent to it yet
};

// Read by the handlers. Written before the first handler is installed.
rt::atomic<int> pipe_in{-1};
rt::atomic<pid_t> owner{0};

struct hub {
  // Taken before `mutex`. The thread holds it while it uses a channel, so that no fork() leaves a channel locked in the
  // child.
  std::mutex delivery;
  // Held for a few instructions, and never while calling anything of weft that may suspend.
  std::mutex mutex;
  int pipe_out = -1;
  bool fed = false;  // the thread is running
  bool watches_forks = false;
  std::vector<registration> registrations;
  unsigned changes = 0;  // of what is wanted, counted
  bool marked = false;   // a changed mark lies in the pipe, or a thread has just read it and is about to look
  // What each signal did before a channel had it, and will do again.
  std::array<struct sigaction, signals_end> before{};
};

hub& the_hub() {
  static rt::never_destroyed<hub> h;  // not on the heap: every run() comes here, also where it cannot fail any more
  return h.value;
}

void on_signal(int number) {
  int saved = errno;
  auto byte = static_cast<unsigned char>(number);
  // A forked child has the parent's pipe at first, and must not tell the parent of its own signals.
  if (::getpid() == owner.load(rt::acquire)) {
    // If the pipe is full, there are thousands of signals that nobody has looked at. One more is dropped.
    [[maybe_unused]] ssize_t n = ::write(pipe_in.load(rt::relaxed), &byte, 1);
  }
  errno = saved;
}

// Returns the next channel for which `number` is due. Does not allocate: there may be no memory, and the signal may be
// the one that ends the program in order.
std::optional<chan<int>> next_due(int number) {
  std::lock_guard hold(the_hub().mutex);
  for (registration& r : the_hub().registrations) {
    if (!r.due.test(static_cast<std::size_t>(number))) continue;
    r.due.reset(static_cast<std::size_t>(number));
    return r.to;
  }
  return std::nullopt;
}

void deliver(int number) {
  std::lock_guard whole(the_hub().delivery);
  {
    std::lock_guard hold(the_hub().mutex);
    for (registration& r : the_hub().registrations) {
      if (r.wanted.test(static_cast<std::size_t>(number))) r.due.set(static_cast<std::size_t>(number));
    }
  }
  while (std::optional<chan<int>> to = next_due(number)) {
    try {
      to->try_send(number);
    } catch (const channel_closed&) {
      // the receiver is no longer interested
    }
  }
}

signal_set wanted_by_any(const hub& h) noexcept {
  signal_set all;
  for (const registration& r : h.registrations) all |= r.wanted;
  return all;
}

// Makes the calling thread take the signals that are asked for, and no others. Every other thread may have them
// blocked, since what a parent blocked stays blocked in the programs that it executes. *seen is the last change that
// the thread knows of.
void take_what_is_wanted(unsigned* seen) noexcept {
  hub& h = the_hub();
  std::lock_guard hold(h.mutex);
  if (*seen == h.changes) return;
  *seen = h.changes;
  const signal_set wanted = wanted_by_any(h);
  sigset_t blocked;
  sigfillset(&blocked);
  for (int i = 1; i < signals_end; ++i) {
    if (wanted.test(static_cast<std::size_t>(i))) sigdelset(&blocked, i);
  }
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

// Called under hub::mutex, after a change of the channels or the pipe. While a channel is fed, a goroutine may be woken
// from outside, so the deadlock check keeps silent. A child of fork() has the channels, but no pipe at first.
void count_channels(const hub& h) noexcept {
  rt::sched.external_sources.store(h.pipe_out >= 0 ? static_cast<std::uint32_t>(h.registrations.size()) : 0,
                                   rt::relaxed);
}

// Called under hub::mutex. The pipe's ends are closed, or their numbers may belong to other files by now.
void forget_pipe(hub& h) noexcept {
  owner.store(0, rt::relaxed);
  pipe_in.store(-1, rt::relaxed);
  h.fed = false;
  h.marked = false;
  h.pipe_out = -1;
  count_channels(h);
}

// Called under hub::mutex. One mark is enough for many changes, and more of them would leave no room for signals. If
// the pipe is full, the thread that reads it comes by soon anyway.
void write_changed_mark(hub& h) noexcept {
  if (!h.marked) h.marked = ::write(pipe_in.load(rt::relaxed), &changed_mark, 1) == 1;
}

// When channels are given up and others are made at once, two threads read the pipe for a moment, and each may take
// what was meant for the other: a quit mark ends either. So each thread knows which change it has seen, and the one
// that ends makes the other look again.
void* feed(void* pipe_out) noexcept {
  const auto from = static_cast<int>(reinterpret_cast<std::intptr_t>(pipe_out));
  ::pthread_setname_np(::pthread_self(), "weft-signals");
  unsigned seen = 0;
  for (;;) {
    take_what_is_wanted(&seen);
    unsigned char byte;
    ssize_t n = ::read(from, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n != 1) {
      {
        std::lock_guard hold(the_hub().mutex);
        if (the_hub().pipe_out == from) forget_pipe(the_hub());
      }
      rt::print_error("weft: the pipe of the signal channels is gone: they receive nothing more\n");
      return nullptr;
    }
    if (byte == quit_mark) {
      std::lock_guard hold(the_hub().mutex);
      write_changed_mark(the_hub());
      return nullptr;
    }
    if (byte == changed_mark) {
      std::lock_guard hold(the_hub().mutex);
      the_hub().marked = false;  // before the look: of a change that comes after it, another mark tells
    } else {
      deliver(byte);
    }
  }
}

// Called under hub::mutex, after a change of what is wanted.
void tell_thread(hub& h) noexcept {
  ++h.changes;
  if (h.fed) write_changed_mark(h);
}

// Ends one thread. Called without hub::mutex: a full pipe empties only while the thread can deliver. If the pipe is
// gone, the thread ends by itself.
void stop_thread(int its_pipe) noexcept {
  while (::write(its_pipe, &quit_mark, 1) != 1) {
    if (errno != EAGAIN && errno != EINTR) return;
    ::usleep(1000);
  }
}

// Holds both locks across a fork(), so that neither is held by another thread, which the child does not have.
void before_fork() noexcept {
  the_hub().delivery.lock();
  the_hub().mutex.lock();
}

void after_fork() noexcept {
  the_hub().mutex.unlock();
  the_hub().delivery.unlock();
}

// Until the child makes its own pipe, its handlers do not write: it is not the owner.
void after_fork_in_child() noexcept {
  hub& h = the_hub();
  if (h.pipe_out >= 0) {
    ::close(h.pipe_out);
    ::close(pipe_in.load(rt::relaxed));
  }
  forget_pipe(h);
  after_fork();
}

// --- all of these are called under hub::mutex; an int is 0 or an errno value, unless a comment says otherwise

int make_pipe(hub& h) noexcept {
  if (h.pipe_out >= 0) return 0;
  if (!h.watches_forks) {
    if (int error = ::pthread_atfork(before_fork, after_fork, after_fork_in_child)) return error;
    h.watches_forks = true;
  }
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno;
  for (int& fd : fds) fd = rt::beyond_standard_streams(fd);
  if (fds[0] < 0 || fds[1] < 0) {
    const int error = errno;
    for (int fd : fds) {
      if (fd >= 0) ::close(fd);
    }
    return error;
  }
  int flags = ::fcntl(fds[1], F_GETFL);
  ::fcntl(fds[1], F_SETFL, flags | O_NONBLOCK);
  h.pipe_out = fds[0];
  pipe_in.store(fds[1], rt::relaxed);
  // release: inherited handlers may run while this changes; one that finds its process to be the owner sees the pipe.
  owner.store(::getpid(), rt::release);
  return 0;
}

int start_feeding(hub& h) noexcept {
  if (h.fed) return 0;
  sigset_t all, mask;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &mask);  // the thread inherits this mask, and then takes what is wanted
  pthread_t thread;
  int error = rt::start_thread(&thread, feed, reinterpret_cast<void*>(std::intptr_t{h.pipe_out}));
  if (error == 0) ::pthread_detach(thread);
  h.fed = error == 0;
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  return error;
}

int install(hub& h, int number) noexcept {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  return ::sigaction(number, &action, &h.before[static_cast<std::size_t>(number)]) == 0 ? 0 : errno;
}

void uninstall(hub& h, const signal_set& which) noexcept {
  // A signal that was sent while we had it, and that has not reached a thread yet, must not do what it does by default:
  // ignoring it for a moment throws away what is pending. SIGCHLD does nothing by default, and a child that ends while
  // SIGCHLD is ignored leaves no exit status to those that wait for it.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (std::size_t i = 1; i < signals_end; ++i) {
    if (!which.test(i)) continue;
    if (i != SIGCHLD) ::sigaction(static_cast<int>(i), &ignore, nullptr);
    ::sigaction(static_cast<int>(i), &h.before[i], nullptr);
  }
}

// Returns the write end of the pipe of the thread that has to be stopped, or -1.
int no_more_use(hub& h) noexcept {
  return h.registrations.empty() && std::exchange(h.fed, false) ? pipe_in.load(rt::relaxed) : -1;
}

// *refused: which signal cannot be had.
int add(hub& h, const registration& r, int* thread_in_vain, std::optional<int>* refused) {
  if (int error = make_pipe(h)) return error;
  h.registrations.reserve(h.registrations.size() + 1);
  signal_set installed;
  signal_set missing = r.wanted & ~wanted_by_any(h);
  int error = start_feeding(h);
  if (error) return error;
  for (std::size_t i = 1; i < signals_end && !error; ++i) {
    if (!missing.test(i)) continue;
    error = install(h, static_cast<int>(i));
    installed.set(i, error == 0);
    if (error) *refused = static_cast<int>(i);
  }
  if (error) {
    uninstall(h, installed);
    *thread_in_vain = no_more_use(h);
    return error;
  }
  h.registrations.push_back(r);
  tell_thread(h);
  return 0;
}

// True for signals that the processor raises: after a handler that returns, they would be raised again at once.
bool is_fault(int number) noexcept {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
}

// *refused: the signal because of which it fails, if it is one signal.
chan<int> make_channel(std::span<const int> numbers, std::error_code& ec, std::optional<int>* refused) {
  ec.clear();
  registration r{chan<int>(buffered), {}, {}};
  int error = numbers.empty() ? EINVAL : 0;
  for (int number : numbers) {
    if (number < 1 || number >= signals_end || is_fault(number)) {
      error = EINVAL;
      *refused = number;
      break;
    }
    r.wanted.set(static_cast<std::size_t>(number));
  }
  if (!error) {
    int thread_in_vain = -1;
    {
      hub& h = the_hub();
      std::lock_guard hold(h.mutex);
      error = add(h, r, &thread_in_vain, refused);
      count_channels(h);
    }
    if (thread_in_vain >= 0) stop_thread(thread_in_vain);
  }
  if (!error) return r.to;
  ec = net::system_error_code(error);
  return nil;
}

}  // namespace

chan<int> signal_channel(std::span<const int> numbers, std::error_code& ec) {
  std::optional<int> refused;
  return make_channel(numbers, ec, &refused);
}

chan<int> signal_channel(std::span<const int> numbers) {
  std::error_code ec;
  std::optional<int> refused;
  chan<int> c = make_channel(numbers, ec, &refused);
  if (ec) net::fail("weft: signal channel", refused ? "for signal " + std::to_string(*refused) : std::string(), ec);
  return c;
}

void stop_signals(const chan<int>& c) {
  int last;
  {
    hub& h = the_hub();
    std::lock_guard hold(h.mutex);
    auto found =
        std::find_if(h.registrations.begin(), h.registrations.end(), [&](const registration& r) { return r.to == c; });
    if (found == h.registrations.end()) return;
    signal_set before = wanted_by_any(h);
    h.registrations.erase(found);  // not the last handle, since the caller has one
    uninstall(h, before & ~wanted_by_any(h));
    last = no_more_use(h);
    if (last < 0) tell_thread(h);
    count_channels(h);
  }
  if (last >= 0) stop_thread(last);
  try {
    c.close();
  } catch (const channel_closed&) {
    // the user closed it before
  }
}

void set_action_beneath_channels(int number, const struct sigaction& action, struct sigaction* before) noexcept {
  hub& h = the_hub();
  std::lock_guard hold(h.mutex);
  auto i = static_cast<std::size_t>(number);
  if (wanted_by_any(h).test(i)) {
    if (before) *before = h.before[i];
    h.before[i] = action;
  } else {
    ::sigaction(number, &action, before);
  }
}

}  // namespace weft::io
