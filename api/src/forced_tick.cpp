#include "api/src/goroutine.hpp"
#include "sched/scheduler.hpp"
#include "weft/runtime.hpp"

#include <mutex>
#include <stdexcept>
#include <vector>

namespace weft {

namespace {

struct hook_list {
  std::mutex mutex;
  std::vector<std::function<void()>> hooks;
};

// Never destroyed: a tick may come while static destructors run.
hook_list& the_hooks() {
  static hook_list* list = new hook_list;
  return *list;
}

// By the housekeeper. The list is copied, so that a hook may take its time, and register another.
void call_hooks() {
  try {
    hook_list& list = the_hooks();
    std::vector<std::function<void()>> hooks;
    {
      std::lock_guard hold(list.mutex);
      hooks = list.hooks;
    }
    for (auto& f : hooks) f();
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
