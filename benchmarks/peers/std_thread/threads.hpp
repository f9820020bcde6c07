// What the workloads for std::thread share.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

namespace bench {

// Runs f in n threads and waits for them.
template <class F>
void in_threads(std::size_t n, F f) {
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < n; ++i) all.emplace_back(f);
  for (auto& t : all) t.join();
}

}  // namespace bench
