#include "api/src/goroutine.hpp"
#include "sched/scheduler.hpp"
#include "weft/runtime.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace weft {

namespace {

struct hook_list {
  std::mutex mutex;
  std::vector<std::shared_ptr<const std::function<void()>>> hooks;  // only added to
};

// Never destroyed: a tick may come while static destructors run.
hook_list& the_hooks() {
  static hook_list* list = new hook_list;
  return *list;
}

// By the housekeeper, without the lock: a hook may take its time, and register another, which the next tick calls.
void call_hooks() {
  try {
    hook_list& list = the_hooks();
    std::size_t count = SIZE_MAX;
    for (std::size_t i = 0; i < count; ++i) {
      std::shared_ptr<const std::function<void()>> f;
      {
        std::lock_guard hold(list.mutex);
        if (i == 0) count = list.hooks.size();
        f = list.hooks[i];
      }
      (*f)();
    }
  } catch (...) {
    detail::die_of_exception(std::current_exception());
  }
}

}  // namespace

void on_forced_tick(std::function<void()> f) {
  if (!f) throw std::invalid_argument("weft::on_forced_tick: an empty function");
  auto kept = std::make_shared<const std::function<void()>>(std::move(f));
  hook_list& list = the_hooks();
  std::lock_guard hold(list.mutex);
  list.hooks.push_back(std::move(kept));
  rt::sched.tick_hook.store(call_hooks, rt::release);
}

}  // namespace weft
