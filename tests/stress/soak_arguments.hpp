// The command line of the soaks: [--seconds=N] [--seed=N]. The values chosen are printed, so that a run can be
// repeated.
#pragma once

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

namespace weft::test {

struct soak_arguments {
  std::chrono::seconds time{3};
  std::uint64_t seed = std::random_device{}();
};

// Any other argument ends the process with status 2.
inline soak_arguments read_soak_arguments(const char* name, int argc, char** argv) {
  soak_arguments chosen;
  for (int i = 1; i < argc; ++i) {
    std::string_view a = argv[i];
    if (a.starts_with("--seconds=")) {
      chosen.time = std::chrono::seconds(std::atol(argv[i] + 10));
    } else if (a.starts_with("--seed=")) {
      chosen.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: %s [--seconds=N] [--seed=N]\n", argv[0]);
      std::exit(2);
    }
  }
  std::printf("%s --seconds=%lld --seed=%" PRIu64 "\n", name, static_cast<long long>(chosen.time.count()), chosen.seed);
  std::fflush(stdout);
  return chosen;
}

}  // namespace weft::test
