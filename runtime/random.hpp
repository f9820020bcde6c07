// Small fast random numbers for scheduling decisions: wyrand by Wang Yi (public domain), one state per user.
#pragma once

#include <cstdint>

namespace weft::rt {

__extension__ using unsigned_128 = unsigned __int128;

class random_source {
 public:
  explicit constexpr random_source(std::uint64_t seed = 0x9e3779b97f4a7c15u) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    state_ += 0xa0761d6478bd642fu;
    auto product = static_cast<unsigned_128>(state_) * (state_ ^ 0xe7037ed1a0b428dbu);
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  }

  // Uniform in [0, n), n > 0, by multiplication (Lemire); the bias of n / 2^32 does not matter here.
  std::uint32_t below(std::uint32_t n) noexcept {
    return static_cast<std::uint32_t>(((next() & 0xffffffffu) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::rt
