#include "tests/support/interleave.hpp"

#include "runtime/exception_state.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace weft::test {

namespace fc = boost::context::detail;

namespace {

constexpr std::size_t stack_size = 256 * 1024;

interleaving* active = nullptr;

// Stacks are kept for the next seed.
std::vector<std::unique_ptr<std::byte[]>>& stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> all;
  return all;
}

}  // namespace

struct kept_store {
  void* where;
  std::uint64_t value;
  std::size_t size;
};

struct interleaving::fiber {
  std::function<void()> body;
  std::size_t number;
  fc::fcontext_t context = nullptr;
  void* own_state = nullptr;
  rt::exception_state exceptions;  // while others have their turns
  bool ended = false;
  bool forgotten = false;
  const void* sleeps_on = nullptr;
  rt::nanos deadline = rt::forever;
  bool woken = false;
  std::size_t stalled_until = 0;  // the number of a step
  // Stores that other threads do not see yet; the newest is last. The capacity is fixed: an allocation or release here
  // would show all stores (simulation.cpp).
  std::vector<kept_store> kept;

  void show_one() noexcept {
    std::memcpy(kept.front().where, &kept.front().value, kept.front().size);
    kept.erase(kept.begin());
  }
  void show_all() noexcept {
    while (!kept.empty()) show_one();
  }

  bool may_be_left() const { return ended || (forgotten && sleeps_on && deadline == rt::forever); }
};

struct interleave_access {
  static interleaving::fiber* here() noexcept { return interleaving::running() ? active->current_ : nullptr; }

  // False for the thread's own stack: before the store is shown, the frame may be gone, and something else in its
  // place.
  static bool may_be_kept(const void* where) noexcept {
    auto distance = reinterpret_cast<std::intptr_t>(where) - reinterpret_cast<std::intptr_t>(&where);
    return std::abs(distance) > std::intptr_t{stack_size};
  }

  static bool keep(void* where, const void* value, std::size_t size) noexcept {
    interleaving::fiber* f = here();
    if (!f || !active->keeps_stores_ || !may_be_kept(where) || active->random_.below(2) == 0) return false;
    if (f->kept.size() == f->kept.capacity()) f->show_one();
    f->kept.push_back({where, 0, size});
    std::memcpy(&f->kept.back().value, value, size);
    return true;
  }

  static bool kept(const void* where, void* value) noexcept {
    interleaving::fiber* f = here();
    if (!f) return false;
    auto newest = std::find_if(f->kept.rbegin(), f->kept.rend(), [=](const kept_store& k) { return k.where == where; });
    if (newest == f->kept.rend()) return false;
    std::memcpy(value, &newest->value, newest->size);
    return true;
  }

  static void point() noexcept {
    interleaving::fiber* f = here();
    if (!f) return;
    if (!f->kept.empty() && active->random_.below(8) == 0) f->show_one();
    if (active->random_.below(active->switch_one_in_) == 0) active->back_to_run();
  }

  static void enter(fc::transfer_t from) noexcept {
    auto* self = static_cast<interleaving*>(from.data);
    interleaving::fiber* f = self->current_;
    f->context = from.fctx;
    f->body();
    f->show_all();
    f->ended = true;
    self->back_to_run();
  }
};

interleaving::interleaving(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {
  // Some faults need many switches, others long stretches in which one thread stands still in the worst place.
  switch_one_in_ = 1u << (1 + random_.below(6));
}

interleaving::~interleaving() = default;

std::size_t interleaving::add(std::function<void()> thread) {
  auto f = std::make_unique<fiber>();
  f->kept.reserve(32);
  f->body = std::move(thread);
  f->number = fibers_.size();
  if (stacks().size() == fibers_.size()) stacks().push_back(std::make_unique<std::byte[]>(stack_size));
  f->context = fc::make_fcontext(stacks()[fibers_.size()].get() + stack_size, stack_size, interleave_access::enter);
  fibers_.push_back(std::move(f));
  return fibers_.size() - 1;
}

void interleaving::forget(std::size_t thread) { fibers_[thread]->forgotten = true; }

bool interleaving::running() noexcept { return active && active->current_; }

std::size_t interleaving::current() noexcept { return active->current_->number; }

void interleaving::leave() noexcept {
  if (running()) active->back_to_run();
}

// Called by the running thread.
void interleaving::back_to_run() noexcept {
  fiber* f = current_;
  // While a fiber runs, its `context` is where run() waits; otherwise it is where the fiber itself waits.
  fc::transfer_t back = fc::jump_fcontext(f->context, nullptr);
  f->context = back.fctx;
}

bool interleaving::sleep_on(const void* word, rt::nanos deadline) noexcept {
  fiber* f = active->current_;
  f->show_all();
  f->sleeps_on = word;
  f->deadline = deadline;
  f->woken = false;
  active->back_to_run();
  return f->woken;
}

void interleaving::wake(const void* word, int count) noexcept {
  if (!active) return;
  show_stores();
  std::size_t n = active->fibers_.size();
  std::size_t at = active->random_.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n && count > 0; ++i, at = (at + 1) % n) {
    fiber& f = *active->fibers_[at];
    if (f.sleeps_on != word) continue;
    f.sleeps_on = nullptr;
    f.woken = true;
    --count;
  }
}

void interleaving::show_stores() noexcept {
  if (running()) active->current_->show_all();
}

void interleaving::show_all_stores() noexcept {
  if (!active) return;
  for (auto& f : active->fibers_) f->show_all();
}

rt::nanos interleaving::now() noexcept { return active->now_; }
void interleaving::pass_time(rt::nanos d) noexcept { active->now_ += d; }

rt::nanos interleaving::earliest_deadline_on(const void* word) const noexcept {
  rt::nanos earliest = rt::forever;
  for (const auto& f : fibers_) {
    if (!f->ended && f->sleeps_on == word) earliest = std::min(earliest, f->deadline);
  }
  return earliest;
}

// Called when all threads sleep: advances the time to the earliest deadline. Returns "", or what is wrong.
std::string interleaving::wake_the_late() {
  rt::nanos next = rt::forever;
  for (const auto& f : fibers_) {
    if (!f->ended) next = std::min(next, f->deadline);
  }
  if (next == rt::forever) return "deadlock";
  std::string wrong = all_sleep();
  now_ = std::max(now_, next);
  return wrong;
}

interleaving::fiber* interleaving::choose(std::size_t step) {
  ready_.clear();
  std::size_t stalled = 0;
  for (auto& f : fibers_) {
    if (f->ended) continue;
    if (f->sleeps_on && f->deadline <= now_) f->sleeps_on = nullptr;
    if (f->sleeps_on) continue;
    ready_.push_back(f.get());
    // Threads that are stalled come last.
    if (f->stalled_until > step) {
      ++stalled;
    } else {
      std::swap(ready_.back(), ready_[ready_.size() - 1 - stalled]);
    }
  }
  if (ready_.empty()) return nullptr;
  // Every kept store is seen at some time, whether its thread goes on or not.
  if (random_.below(8) == 0) {
    fiber& any = *ready_[random_.below(static_cast<std::uint32_t>(ready_.size()))];
    if (!any.kept.empty()) any.show_one();
  }
  std::size_t from = stalled == ready_.size() ? stalled : ready_.size() - stalled;
  fiber* f = ready_[random_.below(static_cast<std::uint32_t>(from))];
  const bool may_stall = stalls_ != 0 && !(one_stalls_ && stalled != 0);
  if (may_stall && random_.below(32) == 0) f->stalled_until = step + random_.below(1u << random_.below(stalls_));
  return f;
}

std::string interleaving::run(std::size_t max_steps) {
  active = this;
  void* outside = take_thread_state();
  std::string result;
  constexpr rt::nanos a_step = 5;  // ns; the deadlines of other threads must come even while a thread polls in a loop
  for (std::size_t step = 0;; ++step, now_ += a_step) {
    fiber* f = choose(step);
    if (!f) {
      if (std::all_of(fibers_.begin(), fibers_.end(), [](const auto& one) { return one->may_be_left(); })) break;
      result = wake_the_late();
      if (!result.empty()) break;
      continue;
    }
    if (step >= max_steps) {
      result = "livelock";
      break;
    }
    put_thread_state(f->own_state);
    current_ = f;
    std::swap(f->exceptions, *rt::exceptions_of_this_thread());
    fc::transfer_t back = fc::jump_fcontext(f->context, this);
    std::swap(f->exceptions, *rt::exceptions_of_this_thread());
    current_ = nullptr;
    f->context = back.fctx;
    f->own_state = take_thread_state();
    if (!failure_.empty()) {
      result = failure_;
      break;
    }
  }
  active = nullptr;
  put_thread_state(outside);
  return result;
}

void interleaving::fail(std::string message) {
  if (running()) {
    active->failure_ = std::move(message);
    active->back_to_run();  // does not return: the fiber is never resumed
  }
  std::fprintf(stderr, "outside of interleaving::run(): %s\n", message.c_str());
  std::abort();
}

void interleaving::wait_until(const std::function<bool()>& condition) {
  while (!condition()) leave();
}

std::uint64_t seeds(std::uint64_t usual) {
  const char* factor = std::getenv("WEFT_TEST_SEEDS");
  return factor ? usual * std::strtoull(factor, nullptr, 10) : usual;
}

}  // namespace weft::test

// Replaces the C library's: switches to another simulated thread.
extern "C" int sched_yield() noexcept {
  weft::test::interleaving::leave();
  return 0;
}

namespace weft::rt {

void interleave_point() noexcept { test::interleave_access::point(); }
bool interleave_keep(void* where, const void* value, std::size_t size) noexcept {
  return test::interleave_access::keep(where, value, size);
}
bool interleave_kept(const void* where, void* value) noexcept { return test::interleave_access::kept(where, value); }
void interleave_show() noexcept { test::interleaving::show_stores(); }

}  // namespace weft::rt
