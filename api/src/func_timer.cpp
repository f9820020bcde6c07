// after_func: a timer whose function starts a goroutine.
//
// As with the timers of channels, a sequence number under a lock (`setting`) decides whether a firing still counts.
// Here the number is odd while the timer is pending: it is armed, and f was not started for this setting. `runs` lists
// the goroutines of this timer that are in f; after a reset there may be several.
//
// The user's closure is destroyed as soon as nothing can call it any more: no handle is left, no firing is pending, and
// no goroutine is in f. The party that brings this about destroys the closure: the one that drops the last handle, or
// the last goroutine that was in f. It does so without a lock and outside the runtime, since the destructors are the
// user's and may wait. The memory stays until no heap holds the node; freeing it is all that is left for a heap to do.
// Only a closure whose timer is still pending when its run() ends is destroyed by the end of that run().

#include "api/src/end_waiters.hpp"
#include "api/src/goroutine.hpp"
#include "api/src/support.hpp"
#include "runtime/linked_list.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"
#include "weft/time.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace weft::detail {

namespace {
constexpr rt::nanos retry_spawn = 10 * rt::millisecond;
}

// The members that stop touches come first, followed by the timer node's state: one cache line to fetch, among a
// million timers.
struct func_timer_setting {
  rt::goroutine_lock mutex{rt::lock_rank::channel};
  rt::atomic<std::uint32_t> handles{1};
  std::uint64_t setting = 0;  // under mutex, except in begin(). Odd: pending
};

// Lies directly before the closure, in the same block of memory.
class func_timer_core : public func_timer_setting, public rt::timer {
 public:
  func_timer_core(const void* at, std::size_t closure_size, std::size_t closure_align) noexcept
      : made_at(at),
        size(static_cast<std::uint32_t>(closure_size)),
        log2_of_align(static_cast<std::uint8_t>(std::countr_zero(closure_align))) {
    dispose = [](rt::timer* t) noexcept {
      auto* core = static_cast<func_timer_core*>(t);
      func_timer_closure* c = core->closure();
      const std::size_t s = core->size, a = std::size_t{1} << core->log2_of_align;
      if (core->has_closure) core->destroy_closure();
      core->~func_timer_core();
      give_room_back(c, s, a);
    };
  }

  // Allocate and free room for both. `closure` is where the closure begins and the core ends.
  static void* make_room(std::size_t closure_size, std::size_t closure_align);
  static void give_room_back(void* closure, std::size_t closure_size, std::size_t closure_align) noexcept;

  func_timer_closure* closure() noexcept { return reinterpret_cast<func_timer_closure*>(this + 1); }
  void destroy_closure() noexcept { closure()->~func_timer_closure(); }

  // Called under mutex. Returns true once, when nothing can call f any more: the caller then destroys the closure,
  // without the mutex and outside the runtime. A goroutine that is in f and never ends, because its run() is over,
  // keeps the closure for ever.
  bool take_closure() noexcept {
    bool will_be_called = setting % 2 != 0 && !never;
    if (handles.load(rt::acquire) != 0 || will_be_called || runs.front()) return false;
    return std::exchange(has_closure, false);
  }

  // Called under mutex. Ends the present setting. True if it was pending.
  bool disarm() noexcept {
    bool pending = setting % 2 != 0;
    if (pending) ++setting;
    return pending;
  }
  // Arms the timer for the first time, from a goroutine. Nobody else knows the timer yet, so this needs no mutex, and
  // no locked instruction for the heap's reference. Once armed, the timer may fire at any moment on another P, so
  // `setting` is written before.
  void begin(rt::M* m, std::int64_t ns) {
    never = ns >= never_ns;
    if (!never) {
      m->p.load(rt::relaxed)->timers.make_room();
      when = deadline_after(ns < 0 ? 0 : ns);
      rt::timer::function = fire;
      seq = 1;
      references.store(2, rt::relaxed);
    }
    setting = 1;
    if (!never) rt::arm_timer(m, this);
  }
  // Called under mutex, when the timer is not pending.
  //
  // The run() may end while a thread that is not a goroutine arms the timer, and the heap may be cleared before the
  // timer is in it. The next run() would call f then. So the thread looks again once the timer is armed: if it came
  // after the heap was cleared, it finds that run() over, and the timer counts as set just before the end: it is
  // pending, and never fires. A firing of the next run() waits for the mutex meanwhile.
  void arm(rt::M* m, std::int64_t ns) {
    const std::uint64_t run = rt::present_run();
    never = ns >= never_ns;
    if (never) {
      rt::stop_timer(m, this);
    } else {
      rt::rearm_timer(m, this, {deadline_after(ns < 0 ? 0 : ns), 0, fire, setting + 1});
    }
    ++setting;
    if (m || !rt::is_over(run)) return;
    setting += 2;
    never = true;
    rt::stop_timer(m, this);
  }

  static void fire(rt::timer* armed, std::uint64_t armed_setting, rt::nanos) noexcept {
    auto* t = static_cast<func_timer_core*>(armed);
    rt::lock_guard hold(t->mutex);
    if (armed_setting != t->setting) return;
    try {
      const new_goroutine g = spawn_begin_at(t->made_at, {}, sizeof(body), alignof(body), "after_func");
      start_in<body>(g, t);
    } catch (...) {
      // There is no memory for a goroutine at the moment. The call was promised, so it is made later.
      t->heap->arm_again(t, deadline_after(retry_spawn));
      return;
    }
    (void)t->disarm();
  }

  // The body of the goroutine that one firing starts. Holds a reference to the timer.
  class body {
   public:
    explicit body(func_timer_core* t) noexcept : t_(t) {
      t_->retain();
      t_->runs.push_back(this);  // under mutex: fire holds it
    }
    body(const body&) = delete;
    body& operator=(const body&) = delete;
    void operator()() {
      g_.store(rt::this_thread()->g, rt::relaxed);
      t_->closure()->call();
    }
    ~body() {
      if (leave()) t_->destroy_closure();
      t_->release();
    }

    bool is_of(const rt::G* g) const noexcept { return g_.load(rt::relaxed) == g; }
    bool is_of_run(std::uint64_t run) const noexcept { return run_ == run; }

    rt::list_links<body> in_runs;

   private:
    // True: the caller must destroy the closure.
    bool leave() noexcept {
      rt::runtime_scope scope;
      end_waiter* woken = nullptr;
      bool closure_is_ours;
      {
        rt::lock_guard hold(t_->mutex);
        t_->runs.erase(this);
        if (!t_->is_running()) woken = t_->waiters.claim_all();
        closure_is_ours = t_->take_closure();
      }
      end_waiters::ready_all(scope.m(), woken);
      return closure_is_ours;
    }

    func_timer_core* t_;
    std::uint64_t run_ = number_of_run();  // once it is over, this goroutine never ends
    rt::atomic<rt::G*> g_{nullptr};        // relaxed: a reader only compares it with its own G
  };

  // Under mutex:
  bool is_running() const noexcept {
    const std::uint64_t run = number_of_run();
    for (const body* b : runs) {
      if (b->is_of_run(run)) return true;
    }
    return false;
  }
  bool is_in_f(const rt::G* g) const noexcept {
    for (const body* b : runs) {
      if (b->is_of(g)) return true;
    }
    return false;
  }
  rt::linked_list<body, &body::in_runs> runs;
  const void* const made_at;  // the return address of after_func: where its goroutines count as started
  end_waiters waiters;        // wait until no goroutine of the present run() is in f (stop_and_wait)
  // Of the closure, which follows this object. If the closure has one word, both together fit a small block
  // (blocks.hpp).
  const std::uint32_t size;
  const std::uint8_t log2_of_align;
  bool has_closure = true;
  bool never = false;  // the present setting never fires
};
static_assert(WEFT_LOCK_RANKS || sizeof(func_timer_core) == 112);

namespace {

std::size_t room_before(std::size_t closure_align) noexcept {
  return (sizeof(func_timer_core) + closure_align - 1) / closure_align * closure_align;
}

}  // namespace

void* func_timer_core::make_room(std::size_t closure_size, std::size_t closure_align) {
  const std::size_t before = room_before(closure_align), all = before + closure_size;
  return static_cast<std::byte*>(take_room(all, closure_align)) + before;
}

void func_timer_core::give_room_back(void* closure, std::size_t closure_size, std::size_t closure_align) noexcept {
  const std::size_t before = room_before(closure_align), all = before + closure_size;
  weft::give_room_back(static_cast<std::byte*>(closure) - before, all, closure_align);
}

void* func_timer_closure::operator new(std::size_t size, std::align_val_t align) {
  return func_timer_core::make_room(size, static_cast<std::size_t>(align));
}

void func_timer_closure::operator delete(void* closure, std::size_t size, std::align_val_t align) noexcept {
  func_timer_core::give_room_back(closure, size, static_cast<std::size_t>(align));
}

func_timer_core* func_timer_make(std::int64_t ns, std::unique_ptr<func_timer_closure> f, std::size_t size,
                                 std::size_t align) {
  const void* at = __builtin_return_address(0);
  rt::throw_if_not_running("after_func");
  auto* t = ::new (reinterpret_cast<std::byte*>(f.get()) - sizeof(func_timer_core)) func_timer_core(at, size, align);
  try {
    rt::runtime_scope scope;
    if (scope.m()) {
      t->begin(scope.m(), ns);
    } else {
      rt::lock_guard hold(t->mutex);
      t->arm(nullptr, ns);
    }
  } catch (...) {
    t->~func_timer_core();
    throw;
  }
  f.release();
  return t;
}

void func_timer_retain(func_timer_core* t) noexcept { t->handles.fetch_add(1, rt::relaxed); }

void func_timer_release(func_timer_core* t) noexcept {
  // If ours is the only handle, nobody makes another.
  if (t->handles.load(rt::acquire) == 1) {
    t->handles.store(0, rt::release);
  } else if (t->handles.fetch_sub(1, rt::acq_rel) != 1) {
    return;
  }
  bool closure_is_ours;
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(t->mutex);
    closure_is_ours = t->take_closure();
  }
  if (closure_is_ours) t->destroy_closure();
  t->release();
}

bool func_timer_stop(func_timer_core* t) {
  rt::runtime_scope scope;
  rt::lock_guard hold(t->mutex);
  bool pending = t->disarm();
  rt::stop_timer(scope.m(), t);
  return pending;
}

bool func_timer_stop_and_wait(func_timer_core* t) {
  rt::runtime_scope scope;
  t->mutex.acquire_lock();
  bool pending = t->disarm();
  rt::stop_timer(scope.m(), t);
  bool in_f = t->is_in_f(scope.g());
  while (!in_f && t->is_running()) {
    end_waiter w{scope.g(), scope.g()->begin_wait()};
    t->waiters.add(&w);
    rt::nanos until = scope.m() ? rt::forever : rt::nanotime() + rt::foreign_look_again;
    bool timed_out = false;
    scope.resumed_on(rt::park_until(scope.m(), w.ticket, t->mutex, rt::wait_reason::event_wait, until, &timed_out));
    if (!timed_out) return pending;
    t->mutex.acquire_lock();
    t->waiters.remove(&w);
  }
  t->mutex.release_lock();
  return pending;
}

bool func_timer_reset(func_timer_core* t, std::int64_t ns) {
  rt::throw_if_not_running("after_func reset");
  rt::runtime_scope scope;
  rt::lock_guard hold(t->mutex);
  // If f resets its own timer while somebody waits for f to end, the reset is ignored: the wait could go on for ever.
  const bool ends = t->waiters.somebody_waits() && t->is_in_f(scope.g());
  if (ends) return t->setting % 2 != 0;
  bool pending = t->disarm();
  t->arm(scope.m(), ns);
  return pending;
}

}  // namespace weft::detail
