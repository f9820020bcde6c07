#include "api/src/process_exit.hpp"

#include "api/src/support.hpp"
#include "weft/time.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace weft::detail {

namespace {

constinit rt::atomic<const rt::G*> exiting{nullptr};
constinit rt::atomic<std::uint64_t> exits_in{0};  // the run() in which `exiting` has called exit(); 0: nobody has

void note_exit() noexcept {
  if (!rt::this_m()) return;
  exiting.store(rt::this_thread()->g, rt::relaxed);
  exits_in.store(number_of_run(), rt::release);  // for `exiting`
}

}  // namespace

void watch_process_exit() {
  static const int registered = std::atexit(note_exit);
  static_cast<void>(registered);
}

void stay_if_process_exits() noexcept {
  const std::uint64_t run = exits_in.load(rt::acquire);
  if (run == 0 || run != number_of_run()) return;
  rt::M* m = rt::this_m();
  // Inside an operation of weft, such as a move of a channel's value, nobody can wait.
  if (!m || m->depth.load(rt::relaxed) != 0 || rt::this_thread()->g == exiting.load(rt::relaxed)) return;
  for (;;) sleep(std::chrono::hours::max());
}

}  // namespace weft::detail
