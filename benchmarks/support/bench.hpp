// What the C++ benchmark programs share: weft's own, and those of its C++ peers. Each is one program with many
// workloads, called as
//
//   PROGRAM WORKLOAD PROCS [SCALE]     runs one and prints one line of JSON
//   PROGRAM list                       prints the names of its workloads
//   PROGRAM ticks PORT COUNT           is started by the first (ticks.hpp)
//
// A workload is a function; each file makes its own known:
//
//   void yield(bench::job& j) {
//     j.measure(j.count(4'000'000), [](std::size_t n) { ... does n operations ... });
//   }
//   const bench::workloads here{{"yield", yield}};
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using clock = std::chrono::steady_clock;

inline std::int64_t now_ns() { return std::chrono::nanoseconds(clock::now().time_since_epoch()).count(); }

// CPU time of all threads of this process, user and system.
std::int64_t cpu_ns();

// Memory of this process that is in RAM.
std::size_t resident_bytes();

// Keeps the compiler from dropping the computation of v.
template <class T>
void keep(const T& v) {
  asm volatile("" : : "r,m"(v) : "memory");
}

// Times in ns, of which the percentiles are wanted.
class samples {
 public:
  void add(std::int64_t ns) { all_.push_back(ns); }
  void add(const samples& more) { all_.insert(all_.end(), more.all_.begin(), more.all_.end()); }
  std::size_t size() const { return all_.size(); }
  std::int64_t percentile(double p);

 private:
  std::vector<std::int64_t> all_;
};

// One run of one workload: what it is asked for, and what it has to say.
class job {
 public:
  job(std::string workload, unsigned procs, double scale)
      : workload_(std::move(workload)), procs_(procs), scale_(scale) {}

  unsigned procs() const { return procs_; }
  double scale() const { return scale_; }

  // How many operations: `full` at scale 1, in proportion at others, a multiple of `unit`.
  std::size_t count(std::size_t full, std::size_t unit = 1) const;

  // The same, for things that need this much memory each: no more than fit into three quarters of what is free.
  std::size_t count_in_memory(std::size_t full, std::size_t bytes_each) const;

  // How many connections that have both their ends in this process: `wanted`, if there are descriptors for them.
  static std::size_t connections(std::size_t wanted);

  // For how long to take samples: a second at least, or the 99th percentile of them would be the worst one.
  std::chrono::nanoseconds period() const;

  // Times f(n), after a warm-up with fewer operations.
  template <class F>
  void measure(std::size_t n, F&& f) {
    f(n / 16 + 1);
    measure_once(n, [&] { f(n); });
  }

  // Times f(), which does n operations, without a warm-up.
  template <class F>
  void measure_once(std::size_t n, F&& f) {
    start();
    f();
    stop(n);
  }
  void start();
  void stop(std::size_t n);

  // Reports percentiles; the median stands for ns_per_op.
  void report(samples& s);

  // Reports percentiles beside what was measured.
  void percentiles(samples& s);

  // One more number in the line of JSON.
  void note(const char* name, double value) { notes_.emplace_back(name, value); }

  void print() const;

 private:
  std::string workload_;
  unsigned procs_;
  double scale_;
  std::int64_t wall_start_ = 0, cpu_start_ = 0;
  double ns_per_op_ = 0;
  std::size_t ops_ = 0;
  std::vector<std::pair<std::string, double>> notes_;
};

struct workload {
  const char* name;
  void (*run)(job&);
};

// Makes workloads known to main(), which is in bench.cpp.
struct workloads {
  workloads(std::initializer_list<workload> more);
};

// Given by the peer: calls run(j) within its runtime, with j.procs() of whatever executes there.
void enter(job& j, void (*run)(job&));

}  // namespace bench
