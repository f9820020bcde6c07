#include "api/src/goroutine.hpp"
#include "sched/scheduler.hpp"
#include "weft/runtime.hpp"

#include <deque>
#include <mutex>
#include <stdexcept>

namespace weft {

namespace {

struct hook_list {
  std::mutex mutex;
  std::deque<std::function<void()>> hooks;  // only appended to, so each hook keeps its address
};

// Never destroyed: a tick may come while static destructors run.
hook_list& the_hooks() {
  static hook_list* list = new hook_list;
  return *list;
}

// Called by the housekeeper. Calls each hook without the lock: a hook may take its time, and may register another hook,
// which the next tick calls.
void call_hooks() {
  try {
    hook_list& list = the_hooks();
    std::unique_lock hold(list.mutex);
    const std::size_t count = list.hooks.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::function<void()>& f = list.hooks[i];
      hold.unlock();
      f();
      hold.lock();
    }
  } catch (...) {
    detail::die_of_exception(std::current_exception());
  }
}

}  // namespace

void on_forced_tick(std::function<void()> f) {
  if (!f) throw std::invalid_argument("weft::on_forced_tick: an empty function");
  hook_list& list = the_hooks();
  std::lock_guard hold(list.mutex);
  list.hooks.push_back(std::move(f));
  rt::sched.tick_hook.store(call_hooks, rt::release);
}

}  // namespace weft
