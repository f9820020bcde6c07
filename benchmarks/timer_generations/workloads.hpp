// The workloads, the same for every generation.
//
//   create_stop   an operation: a timer is made, armed and stopped at once, beside n others; all are due in an hour or
//                 two
//   replace       an operation: the oldest of a P's share of the n timers is stopped, and a new one takes its place, as
//                 if n requests were under way, each with a time limit
//   reset         an operation: a random one of the n timers is set to another time, in an hour or two
//   fire          an operation: a timer is armed and fires. Each P arms its share of the n timers, all due within the
//                 same millisecond, which begins when all are armed. Then it waits for them, and begins again. A timer
//                 has fired when the P has its letter
//
// In the others a P looks for due timers once in 64 operations, as a scheduler does between two goroutines.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "benchmarks/timer_generations/generation.hpp"
#include "benchmarks/timer_generations/inbox.hpp"
#include "benchmarks/timer_generations/measure.hpp"
#include "benchmarks/timer_generations/team.hpp"
#include "runtime/random.hpp"

namespace generations {

constexpr std::size_t ops_per_look = 64;

// Returns P p's share of n.
inline std::size_t share(std::size_t n, unsigned p, unsigned procs) { return n / procs + (p < n % procs ? 1 : 0); }

inline void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

// Random times that are an hour or two away.
class far_deadlines {
 public:
  explicit far_deadlines(unsigned p) : random_(p + 1), base_(rt::nanotime() + 3600 * rt::second) {}
  nanos next() { return base_ + static_cast<nanos>(random_.next() >> 22); }  // within 73 minutes
  std::size_t below(std::size_t n) { return random_.below(static_cast<std::uint32_t>(n)); }

 private:
  rt::random_source random_;
  nanos base_;
};

inline void must_not_fire(void*, std::uint64_t, nanos) noexcept { require(false, "a timer fired an hour early"); }

// Arms P p's share of the timers. Every 16th goes into the next P's structure, as if its goroutine had moved since.
template <generation T>
std::vector<typename T::timer*> populate(T& g, const job& j, unsigned p, far_deadlines& deadlines) {
  std::vector<typename T::timer*> timers(share(j.timers, p, j.procs));
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i] = T::make(must_not_fire, nullptr);
    g.add(i % 16 == 15 ? (p + 1) % j.procs : p, timers[i], deadlines.next());
  }
  return timers;
}

template <generation T>
void dismiss(T& g, std::vector<typename T::timer*>& timers) {
  for (auto* t : timers) {
    require(g.stop(t), "a timer was not armed");
    T::drop(t);
  }
}

// Shared by all workloads but `fire`: calls op(g, p, timers, deadlines) on all Ps, `ops` times in all, and measures it.
template <generation T, class Op>
outcome among_others(const job& j, std::size_t ops, Op op) {
  T g(j.procs);
  team ps(j.procs);
  outcome o;
  o.ops = ops;
  ps.run([&](unsigned p) {
    far_deadlines deadlines(p);
    auto timers = populate(g, j, p, deadlines);
    ps.meet([&] { o.begin = reading::now(); });
    for (std::size_t i = 0, n = share(ops, p, j.procs); i < n; ++i) {
      op(g, p, timers, deadlines);
      if (i % ops_per_look == 0) g.fire(p, rt::nanotime());
    }
    ps.meet([&] { o.end = reading::now(); });
    dismiss(g, timers);
  });
  return o;
}

template <generation T>
outcome create_stop(const job& j) {
  return among_others<T>(j, j.count(2'000'000, j.procs), [](T& g, unsigned p, auto&, far_deadlines& deadlines) {
    auto* t = T::make(must_not_fire, nullptr);
    g.add(p, t, deadlines.next());
    require(g.stop(t), "a new timer was not armed");
    T::drop(t);
  });
}

template <generation T>
outcome replace(const job& j) {
  std::vector<std::size_t> oldest(j.procs * 16);  // an index for each P, no two in one cache line
  return among_others<T>(j, j.count(2'000'000, j.procs), [&](T& g, unsigned p, auto& timers, far_deadlines& deadlines) {
    std::size_t& i = oldest[p * 16];
    require(g.stop(timers[i]), "a timer was not armed");
    T::drop(timers[i]);
    timers[i] = T::make(must_not_fire, nullptr);
    g.add(p, timers[i], deadlines.next());
    if (++i == timers.size()) i = 0;
  });
}

template <generation T>
outcome reset(const job& j) {
  return among_others<T>(j, j.count(4'000'000, j.procs), [](T& g, unsigned p, auto& timers, far_deadlines& deadlines) {
    require(g.reset(p, timers[deadlines.below(timers.size())], deadlines.next()), "a timer was not armed");
  });
}

inline void deliver(void* arg, std::uint64_t, nanos due) noexcept {
  auto* l = static_cast<letter*>(arg);
  l->due = due;
  l->to->put(l);
}

// One P's part in `fire`.
template <generation T>
class firing {
 public:
  firing(T& g, unsigned p, inbox& in, std::size_t timers, std::size_t waves)
      : g_(g), p_(p), inbox_(in), letters_(timers), random_(p + 1) {
    for (letter& l : letters_) {
      l.to = &inbox_;
      timers_.push_back(T::make(deliver, &l));
    }
    late_.reserve(timers * waves);
  }
  ~firing() {
    for (auto* t : timers_) T::drop(t);
  }
  firing(const firing&) = delete;
  firing& operator=(const firing&) = delete;

  void wave() {
    arm();
    for (std::size_t missing = timers_.size(); missing > 0;) {
      nanos next = g_.fire(p_, rt::nanotime());
      std::size_t got = read_letters();
      missing -= got;
      if (got == 0) inbox_.sleep_until(next == 0 ? rt::forever : next);
    }
  }

  std::vector<nanos>& late() { return late_; }

 private:
  // The first deadline leaves 100 us and twice the time that arming took the last time, so that all are armed by then.
  void arm() {
    nanos begin = rt::nanotime();
    for (auto* t : timers_) g_.add(p_, t, begin + lead_ + random_.below(rt::millisecond));
    lead_ = 100 * rt::microsecond + 2 * (rt::nanotime() - begin);
  }

  std::size_t read_letters() {
    letter* l = inbox_.take_all();
    if (!l) return 0;
    std::size_t n = 0;
    for (nanos now = rt::nanotime(); l; ++n) {
      letter* next = l->next;
      late_.push_back(now - l->due);
      l = next;
    }
    return n;
  }

  T& g_;
  unsigned p_;
  inbox& inbox_;
  std::vector<letter> letters_;
  std::vector<typename T::timer*> timers_;
  std::vector<nanos> late_;
  rt::random_source random_;
  nanos lead_ = 0;
};

template <generation T>
outcome fire(const job& j) {
  std::size_t waves = j.count(std::min<std::size_t>(300, 1'000'000 / j.timers), 2);
  std::deque<inbox> inboxes(j.procs);  // outlive g, as a thread of g may still be about to leave an inbox
  T g(j.procs);
  std::deque<firing<T>> parts;
  for (unsigned p = 0; p < j.procs; ++p) parts.emplace_back(g, p, inboxes[p], share(j.timers, p, j.procs), waves + 1);
  team ps(j.procs);
  outcome o;
  o.ops = waves * j.timers;
  ps.run([&](unsigned p) {
    parts[p].wave();
    parts[p].late().clear();
    ps.meet([&] { o.begin = reading::now(); });
    for (std::size_t i = 0; i < waves; ++i) parts[p].wave();
    ps.meet([&] { o.end = reading::now(); });
  });
  for (auto& part : parts) o.late.insert(o.late.end(), part.late().begin(), part.late().end());
  return o;
}

}  // namespace generations
