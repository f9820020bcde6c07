#include "sched/process_exit.hpp"

#include "sched/enter.hpp"
#include "sched/threads.hpp"

#include <cstdint>
#include <cstdlib>

namespace weft::rt {

namespace {

constinit atomic<const G*> exiting{nullptr};
constinit atomic<std::uint64_t> exits_in{0};  // the run() in which `exiting` has called exit(); 0: nobody has

// `by` is null if a plain thread ends the process.
void note_exit(const G* by) noexcept {
  exiting.store(by, relaxed);
  exits_in.store(present_run(), release);  // for `exiting`
}

struct exit_watch {
  ~exit_watch() {
    const M* m = this_m();
    if (m && m->g->kind == g_kind::goroutine) note_exit(m->g);
  }
  void touch() const noexcept {}
};

// Called by exit(), which a goroutine or a plain thread has called, or main() by returning.
void process_ends() noexcept {
  if (exits_in.load(relaxed) != present_run()) note_exit(nullptr);
}

}  // namespace

void watch_for_exit() noexcept {
  // The C library ends the process if it has no memory to note this. Then an exit() from this thread goes unnoticed.
  void* volatile room = std::malloc(4096);
  if (!room) return;
  std::free(room);
  // If it cannot be registered, only the exit() of a goroutine is noticed.
  [[maybe_unused]] static const int registered = std::atexit(process_ends);
  static thread_local const exit_watch watch;
  watch.touch();
}

bool process_exits() noexcept {
  const std::uint64_t run = exits_in.load(acquire);
  return run != 0 && run == present_run() && this_thread()->g != exiting.load(relaxed);
}

}  // namespace weft::rt
