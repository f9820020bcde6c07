#include "tests/support/interleave.hpp"

#include "runtime/futex.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weft::test {

namespace fc = boost::context::detail;

namespace {

constexpr std::size_t stack_size = 128 * 1024;

interleaving* active = nullptr;

// Stacks are used again by the next seed.
std::vector<std::unique_ptr<std::byte[]>>& stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> all;
  return all;
}

}  // namespace

struct interleaving::fiber {
  std::function<void()> body;
  std::size_t number;
  fc::fcontext_t context = nullptr;
  bool ended = false;
  const void* sleeps_on = nullptr;  // a futex word
};

struct interleave_access {
  static bool running() noexcept { return active && active->current_; }

  static void point() noexcept {
    if (!running()) return;
    if (active->random_.below(active->switch_one_in_) == 0) active->leave();
  }

  static void sleep_on(const void* word) noexcept {
    active->current_->sleeps_on = word;
    active->leave();
  }

  static void wake(const void* word, int count) noexcept {
    if (!active) return;
    // Which sleeper is woken is not defined: begin anywhere.
    std::size_t n = active->fibers_.size();
    std::size_t at = active->random_.below(static_cast<std::uint32_t>(n));
    for (std::size_t i = 0; i < n && count > 0; ++i, at = (at + 1) % n) {
      if (active->fibers_[at]->sleeps_on != word) continue;
      active->fibers_[at]->sleeps_on = nullptr;
      --count;
    }
  }

  static void leave() noexcept { active->leave(); }

  static void enter(fc::transfer_t from) noexcept {
    auto* self = static_cast<interleaving*>(from.data);
    interleaving::fiber* f = self->current_;
    f->context = from.fctx;
    f->body();
    f->ended = true;
    self->leave();
  }

  static void fail(std::string message) noexcept {
    active->failure_ = std::move(message);
    active->leave();
  }
};

interleaving::interleaving(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {
  // Some orders need many changes, others long stretches in which one thread stands still in the worst place.
  switch_one_in_ = 1u << (1 + random_.below(6));
}

interleaving::~interleaving() = default;

void interleaving::add(std::function<void()> thread) {
  auto f = std::make_unique<fiber>();
  f->body = std::move(thread);
  f->number = fibers_.size();
  if (stacks().size() == fibers_.size()) stacks().push_back(std::make_unique<std::byte[]>(stack_size));
  f->context = fc::make_fcontext(stacks()[fibers_.size()].get() + stack_size, stack_size, interleave_access::enter);
  fibers_.push_back(std::move(f));
}

std::size_t interleaving::current() noexcept { return active->current_->number; }

// From the running thread back to run().
void interleaving::leave() noexcept {
  fiber* f = current_;
  // Where run() waits is kept in the fiber that it resumed.
  fc::transfer_t back = fc::jump_fcontext(f->context, nullptr);
  f->context = back.fctx;
}

std::string interleaving::run(std::size_t max_steps) {
  active = this;
  std::vector<fiber*> ready;
  std::string result;
  for (std::size_t step = 0;; ++step) {
    ready.clear();
    bool all_ended = true;
    for (auto& f : fibers_) {
      if (f->ended) continue;
      all_ended = false;
      if (!f->sleeps_on) ready.push_back(f.get());
    }
    if (all_ended) break;
    if (ready.empty()) result = "deadlock";
    if (step >= max_steps) result = "livelock";
    if (!result.empty()) break;
    current_ = ready[random_.below(static_cast<std::uint32_t>(ready.size()))];
    fc::transfer_t back = fc::jump_fcontext(current_->context, this);
    current_->context = back.fctx;
    current_ = nullptr;
    if (!failure_.empty()) {
      result = failure_;
      break;
    }
  }
  active = nullptr;
  return result;
}

void interleaving::fail(std::string message) {
  if (interleave_access::running()) interleave_access::fail(std::move(message));  // it is never resumed
  std::fprintf(stderr, "outside of interleaving::run(): %s\n", message.c_str());
  std::abort();
}

void interleaving::wait_until(const std::function<bool()>& condition) {
  while (!condition()) interleave_access::leave();
}

std::uint64_t seeds(std::uint64_t usual) {
  const char* factor = std::getenv("WEFT_TEST_SEEDS");
  return factor ? usual * std::strtoull(factor, nullptr, 10) : usual;
}

}  // namespace weft::test

// In place of the system's: "let another thread run" means one of ours.
extern "C" int sched_yield() noexcept {
  if (weft::test::interleave_access::running()) weft::test::interleave_access::leave();
  return 0;
}

// In place of runtime/futex.cpp. Outside of run() nobody contends, so nothing ever sleeps.
namespace weft::rt {

using weft::test::interleave_access;

void interleave_point() noexcept { interleave_access::point(); }

void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  if (word->load(relaxed) == expected && interleave_access::running()) interleave_access::sleep_on(word);
}

// Time does not pass here: the deadline may come at any moment, or not before the wake-up.
bool futex_wait_until(atomic<std::uint32_t>* word, std::uint32_t expected, nanos) noexcept {
  if (word->load(relaxed) == expected) interleave_access::leave();
  return false;
}

void futex_wake(atomic<std::uint32_t>* word, int count) noexcept { interleave_access::wake(word, count); }

}  // namespace weft::rt
