#include "runtime/time_slice.hpp"

#include "runtime/clock.hpp"
#include "runtime/thread.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::rt {

namespace {

// As in <linux/sched/types.h>, which cannot be included together with an older <sched.h>.
struct attributes {
  std::uint32_t size = sizeof(attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // the slice, under the normal policies; 0: the system's
  std::uint64_t deadline = 0, period = 0;
};
static_assert(sizeof(attributes) == 48);

constexpr std::uint64_t reset_on_fork = 1;  // SCHED_FLAG_RESET_ON_FORK

constexpr nanos short_slice = 100 * microsecond;  // the least that the kernel allows
constexpr nanos usual_slice = 0;                  // the system's: about 3 ms
constexpr nanos long_slice = 20 * millisecond;

void set_slice(int tid, nanos length) noexcept {
  errno_stays keep;
  attributes a;
  if (::syscall(SYS_sched_getattr, tid, &a, sizeof a, 0) != 0) return;
  if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH) return;
  a.size = sizeof a;
  a.runtime = static_cast<std::uint64_t>(length);
  // With this flag, threads that the thread starts have the system's slices. The flag would also raise a nice value
  // below zero to zero in them, so it is not set then. It cannot be taken back without a privilege.
  if (a.nice >= 0) a.flags |= reset_on_fork;
  ::syscall(SYS_sched_setattr, tid, &a, 0);
}

}  // namespace

void use_short_slices(int tid) noexcept { set_slice(tid, short_slice); }
void use_usual_slices(int tid) noexcept { set_slice(tid, usual_slice); }
void use_long_slices(int tid) noexcept { set_slice(tid, long_slice); }

}  // namespace weft::rt
