// The threads of a run, each of which stands for a P, and the points where they wait for each other.
#pragma once

#include <pthread.h>

#include <thread>
#include <vector>

namespace generations {

class team {
 public:
  explicit team(unsigned procs) : procs_(procs) { pthread_barrier_init(&barrier_, nullptr, procs); }
  ~team() { pthread_barrier_destroy(&barrier_); }
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  // Calls f(p) on a thread for each P.
  template <class F>
  void run(F f) {
    std::vector<std::thread> threads;
    for (unsigned p = 0; p < procs_; ++p) threads.emplace_back([=] { f(p); });
    for (std::thread& t : threads) t.join();
  }

  // Called by each P. When all have come, one of them calls f(); then all go on.
  template <class F>
  void meet(F f) {
    if (pthread_barrier_wait(&barrier_) == PTHREAD_BARRIER_SERIAL_THREAD) f();
    pthread_barrier_wait(&barrier_);
  }

 private:
  unsigned procs_;
  pthread_barrier_t barrier_;
};

}  // namespace generations
