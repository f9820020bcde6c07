#include "sysmon/thread_state.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::rt {

namespace {

// Returns what /proc/self/task/TID/NAME says, or nothing.
std::string_view read_about(int tid, const char* name, char* buffer, std::size_t size) noexcept {
  char path[64];
  *fmt::format_to_n(path, sizeof path - 1, "/proc/self/task/{}/{}", tid, name).out = '\0';
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  ssize_t n = ::read(fd, buffer, size);
  ::close(fd);
  return {buffer, n > 0 ? static_cast<std::size_t>(n) : 0};
}

struct system_call {
  long number;
  const char* name;
};

// The system calls that may take long.
constexpr system_call system_calls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_preadv, "preadv"},
    {SYS_pwritev, "pwritev"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync, "sync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_sendfile, "sendfile"},
    {SYS_splice, "splice"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_getdents64, "getdents64"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_futex, "futex"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_getrandom, "getrandom"},
#if defined(__x86_64__)  // newer architectures do without these
    {SYS_open, "open"},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_pause, "pause"},
    {SYS_epoll_wait, "epoll_wait"},
#endif
};

}  // namespace

thread_does look_at_thread(int tid) noexcept {
  char buffer[256];
  std::string_view text = read_about(tid, "stat", buffer, sizeof buffer);
  // "1234 (name with any bytes) R ...": the state follows the last parenthesis.
  auto end_of_name = text.rfind(')');
  if (end_of_name == text.npos) return thread_does::unknown;
  return text.substr(end_of_name).starts_with(") R") ? thread_does::compute : thread_does::sleep;
}

nanos thread_time(int tid) noexcept {
  // The clock as pthread_getcpuclockid makes it: the thread's id inverted, "of a thread" (4), "as the scheduler counts"
  // (2).
  auto id = static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | 4 | 2);
  timespec t;
  if (::clock_gettime(id, &t) != 0) return -1;
  return t.tv_sec * second + t.tv_nsec;
}

std::string_view describe_thread(int tid, char* buffer, std::size_t size) noexcept {
  // "running", or "230 0x0 ...": the system call's number, -1 for a page fault.
  char about[256];
  std::string_view text = read_about(tid, "syscall", about, sizeof about);
  long number = -1;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc() && number >= 0) {
    auto* known = std::find_if(std::begin(system_calls), std::end(system_calls),
                               [=](const system_call& c) { return c.number == number; });
    auto r = known != std::end(system_calls) ? fmt::format_to_n(buffer, size, "in {}", known->name)
                                             : fmt::format_to_n(buffer, size, "in system call {}", number);
    return {buffer, std::min(size, r.size)};
  }
  if (text.starts_with("running")) return "computing";
  switch (look_at_thread(tid)) {
    case thread_does::compute: return "computing";
    case thread_does::sleep: return "asleep in the kernel";
    case thread_does::unknown: break;
  }
  return "computing or asleep in the kernel";
}

}  // namespace weft::rt
