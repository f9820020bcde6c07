#include "runtime/futex.hpp"

#include <cerrno>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::rt {

namespace {

long futex(void* word, int op, std::uint32_t value, const timespec* timeout, std::uint32_t value3) noexcept {
  int saved = errno;
  long r = ::syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, value3);
  if (r < 0) r = -errno;
  errno = saved;  // the runtime sleeps on behalf of goroutines whose errno must not change
  return r;
}

}  // namespace

void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  futex(word, FUTEX_WAIT, expected, nullptr, 0);
}

bool futex_wait_until(atomic<std::uint32_t>* word, std::uint32_t expected, nanos deadline) noexcept {
  if (deadline == forever) {
    futex_wait(word, expected);
    return true;
  }
  if (deadline < 0) deadline = 0;
  // FUTEX_WAIT_BITSET takes an absolute time on CLOCK_MONOTONIC, so a signal does not lengthen the sleep.
  timespec ts{static_cast<time_t>(deadline / second), static_cast<long>(deadline % second)};
  return futex(word, FUTEX_WAIT_BITSET, expected, &ts, FUTEX_BITSET_MATCH_ANY) != -ETIMEDOUT;
}

void futex_wake(atomic<std::uint32_t>* word, int count) noexcept {
  futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(count), nullptr, 0);
}

}  // namespace weft::rt
