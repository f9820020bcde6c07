// The head of a group of goroutines in a dump (dump.cpp): how many there are, their numbers and names, what they do and
// for how long.
#pragma once

#include "sched/snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <utility>

namespace weft::rt {

// Text of bounded length.
template <std::size_t size>
class short_text {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) noexcept {
    auto r = fmt::format_to_n(text_ + used_, size - used_, format, std::forward<Args>(args)...);
    used_ = std::min(size, used_ + r.size);
  }
  std::string_view get() const noexcept { return {text_, used_}; }

 private:
  char text_[size];
  std::size_t used_ = 0;
};

using head_text = short_text<512>;

// Returns the head of a group, which is not empty. *says_all: whether the head tells each goroutine's number and name.
head_text head_of(std::span<const seen_goroutine> group, nanos now, bool* says_all) noexcept;

// Takes goroutines from the front of *left, as many as fill about a line, and returns that line: "3 'reader', 4-7
// 'writer'".
short_text<160> some_of(std::span<const seen_goroutine>* left) noexcept;

// Returns ", locked to thread" or ", pinned to thread" for the bits of mark::tied, or "".
const char* describe_tie(std::uint8_t marks) noexcept;

}  // namespace weft::rt
