// A timer's memory is overwritten while the runtime has the timer in a heap: weft must notice the illegal state.
#include "api/src/support.hpp"
#include "sched/timing.hpp"

#include <chrono>
#include <weft/weft.hpp>

using namespace weft::rt;

int main() {
  static timer t;
  return weft::run([] {
    {
      runtime_scope scope;
      auto nothing = [](timer*, std::uint64_t, nanos) noexcept {};
      rearm_timer(scope.m(), &t, {nanotime() + millisecond, 0, nothing, 0});
      t.status.store(timer_status::removing, release);
    }
    weft::sleep(std::chrono::seconds(10));
  });
}
