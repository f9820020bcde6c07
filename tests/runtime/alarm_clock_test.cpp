// The alarm: who wakes its sleeper, and when; and that no thread takes back a wake-up that is not its own.
//
// Kills these mutants (tests/mutants): alarm-*.

#include "runtime/alarm_clock.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>

using namespace weft::rt;

namespace {

struct with_descriptor : alarm_clock {
  with_descriptor() { use(fd); }
  ~with_descriptor() { ::close(fd); }
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
};

constexpr nanos late = 10 * second;
nanos in(nanos d) { return nanotime() + d; }

// The alarm to wake in the middle of ring_at and ring_no_more, before they set the timer.
std::atomic<alarm_clock*> woken_meanwhile{nullptr};

}  // namespace

extern "C" int __real_timerfd_settime(int, int, const itimerspec*, itimerspec*);
extern "C" int __wrap_timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* before) {
  if (alarm_clock* a = woken_meanwhile.exchange(nullptr)) a->wakeup();
  return __real_timerfd_settime(fd, flags, at, before);
}

TEST_CASE("alarm: it rings in time, and no more once it was taken back") {
  with_descriptor a;
  nanos before = nanotime();
  CHECK(a.ring_at(before + 5 * millisecond));
  CHECK(a.sleep_until(before + late));
  CHECK(nanotime() >= before + 5 * millisecond);
  CHECK(nanotime() < before + late);

  a.ring_at(in(5 * millisecond));
  a.ring_no_more();
  CHECK_FALSE(a.sleep_until(in(20 * millisecond)));

  a.ring_at(in(late));
  CHECK_FALSE(a.sleep_until(in(5 * millisecond)));
  a.ring_at(in(millisecond));  // the last one counts
  CHECK(a.sleep_until(in(late)));
  CHECK_FALSE(a.sleep_until(in(5 * millisecond)));  // it rings only once
}

TEST_CASE("alarm: a wake-up that comes before the sleep ends it, once") {
  with_descriptor a;
  a.wakeup();
  a.wakeup();
  CHECK(a.sleep_until(in(late)));
  CHECK_FALSE(a.sleep_until(in(5 * millisecond)));
  a.wakeup();
  CHECK(a.sleep_until(0));
  CHECK_FALSE(a.sleep_until(0));
}

// T2. A wake-up comes in the middle of ring_at and of ring_no_more, just before they set the timer.
TEST_CASE("alarm: whoever sets a time, or takes it back, takes back no wake-up") {
  for (int i = 0; i < 100; ++i) {
    with_descriptor a;
    std::atomic<bool> over{false}, rang{false};
    std::thread sleeper([&] {
      rang = a.sleep_until(in(late));
      over = true;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    woken_meanwhile = &a;
    if (i % 2) {
      a.ring_no_more();
    } else {
      CHECK(a.ring_at(in(late)));
    }
    nanos give_up = in(second);
    while (!over && nanotime() < give_up) std::this_thread::yield();
    CHECK(over);
    if (!over) a.wakeup();
    sleeper.join();
    CHECK(rang);
  }
}

TEST_CASE("alarm: errno stays, also if somebody closed the descriptor, and then it does not run flat out") {
  alarm_clock a;
  a.use(1 << 20);  // not open
  errno = 7;
  a.wakeup();
  CHECK_FALSE(a.ring_at(in(second)));
  a.ring_no_more();
  CHECK(errno == 7);
  CHECK(a.sleep_until(in(late)));  // by the wake-up above
  nanos before = nanotime();
  static_cast<void>(a.sleep_until(before + 5 * millisecond));
  CHECK(nanotime() - before >= 4 * millisecond);
}

TEST_CASE("alarm: it says if its sleeper cannot hear it") {
  int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);  // always readable, but not a timer
  alarm_clock a;
  a.use(zero);
  nanos before = nanotime();
  for (int i = 0; i < 5; ++i) CHECK_FALSE(a.sleep_until(in(2 * millisecond)));
  CHECK(nanotime() - before >= 9 * millisecond);
  CHECK_FALSE(a.ring_at(in(millisecond)));
  ::close(zero);
}
