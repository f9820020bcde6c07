// Shared by the C++ benchmark programs: weft's own and those of its C++ peers. Each program has many workloads and is
// called as
//
//   PROGRAM WORKLOAD PROCS [SCALE]     runs one and prints one line of JSON
//   PROGRAM list                       prints the names of its workloads
//   PROGRAM ticks PORT COUNT           sends ticks; a workload starts this (ticks.hpp)
//
// A workload is a function. Each file registers its own:
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

// Returns the CPU time of all threads of this process, user and system.
std::int64_t cpu_ns();

// Returns how much memory of this process is resident.
std::size_t resident_bytes();

// Keeps the compiler from dropping the computation of v.
template <class T>
void keep(const T& v) {
  asm volatile("" : : "r,m"(v) : "memory");
}

// Takes about 2 µs: it waits for one multiplication after the other.
[[gnu::noinline]] inline void work() {
  std::uint64_t x = 1;
  for (int i = 0; i < 2000; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    keep(x);  // or the compiler might find a shorter way
  }
}

// Collects times in ns whose percentiles are wanted.
class samples {
 public:
  void add(std::int64_t ns) { all_.push_back(ns); }
  void add(const samples& more) { all_.insert(all_.end(), more.all_.begin(), more.all_.end()); }
  std::size_t size() const { return all_.size(); }
  std::int64_t percentile(double p);

 private:
  std::vector<std::int64_t> all_;
};

// One run of one workload: its parameters and its results.
class job {
 public:
  job(std::string workload, unsigned procs, double scale)
      : workload_(std::move(workload)), procs_(procs), scale_(scale) {}

  unsigned procs() const { return procs_; }
  double scale() const { return scale_; }

  // Returns the number of operations: `full` at scale 1, in proportion at other scales, rounded down to a multiple of
  // `unit`, but not to 0.
  std::size_t count(std::size_t full, std::size_t unit = 1) const;

  // The same for things that need this much memory each: no more than fit into three quarters of the memory that is
  // free.
  std::size_t count_in_memory(std::size_t full, std::size_t bytes_each) const;

  // Returns how many connections can have both ends in this process: `wanted`, or fewer if the descriptors do not
  // suffice. Raises the limit on descriptors as far as it may.
  static std::size_t connections(std::size_t wanted);

  // Returns for how long to take samples: at least a second. A shorter time gives so few samples that the worst one is
  // the 99th percentile.
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

  // Reports percentiles, and the median as ns_per_op.
  void report(samples& s);

  // Reports percentiles in addition to what was measured.
  void percentiles(samples& s);

  // Adds a number to the line of JSON.
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

// Registers workloads for main(), which is in bench.cpp.
struct workloads {
  workloads(std::initializer_list<workload> more);
};

// Defined by each program: calls run(j) within its runtime, with j.procs() of whatever executes there (Ps, threads).
void enter(job& j, void (*run)(job&));

}  // namespace bench
