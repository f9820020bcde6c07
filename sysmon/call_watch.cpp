#include "sysmon/call_watch.hpp"

#include "sysmon/thread_state.hpp"

#include <algorithm>

namespace weft::rt {

namespace {
constexpr int most_looks_apart = 16;
}

void call_watch::in_vain() noexcept {
  watched_ = nullptr;
  looks_apart_ = std::min(2 * looks_apart_, most_looks_apart);
}

void call_watch::gone_on(const P* p, std::uint64_t tick, nanos now) noexcept {
  if (watched_ == p) in_vain();
  if (watched_ || p->id < turn_ || p->runq.empty() || sched.idle_ps.load(relaxed) != 0) return;
  turn_ = p->id + 1;
  if (++looks_ < looks_apart_) return;
  looks_ = 0;
  {
    lock_guard hold(sched.mutex);  // an M that holds a P does not go away meanwhile
    const M* m = p->m.load(relaxed);
    if (!m) return;
    tid_ = m->tid.load(relaxed);
  }
  used_ = thread_time(tid_);
  watched_ = p;
  tick_ = tick;
  since_ = now;
}

bool call_watch::blocks(const P* p, std::uint64_t tick, nanos now) noexcept {
  if (watched_ != p || tick_ != tick || now < next_look()) return false;
  const bool found = used_ >= 0 && thread_time(tid_) == used_ && look_at_thread(tid_) == thread_does::sleep;
  in_vain();
  if (found) looks_apart_ = 1;
  return found;
}

void call_watch::end_of_round(nanos now) noexcept {
  if (watched_ && now >= next_look()) in_vain();  // the P idles, or its M is in a call that was announced
  if (!watched_) turn_ = 0;
}

}  // namespace weft::rt
