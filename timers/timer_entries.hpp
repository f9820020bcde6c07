// The array under a heap of timers. An entry is {when, timer}; the time lies beside the pointer so that sifting does
// not touch the timers.
//
// Where the array lies in memory matters. The four children of entry i, 4i+1 to 4i+4, share a cache line, so entry 1
// begins a line. The array grows by realloc, which moves a large block by changing the page table: nothing is copied,
// and no pages of a second block are touched for the first time.
#pragma once

#include "timers/timer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace weft::rt {

struct timer_entry {
  nanos when;
  timer* t;
};

class timer_entries {
 public:
  timer_entries() = default;
  timer_entries(timer_entries&& o) noexcept { swap(o); }
  timer_entries& operator=(timer_entries&& o) noexcept {
    timer_entries(std::move(o)).swap(*this);
    return *this;
  }
  ~timer_entries() { std::free(block_); }

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }

  timer_entry& operator[](std::size_t i) noexcept { return first()[i]; }
  timer_entry& front() noexcept { return first()[0]; }
  timer_entry& back() noexcept { return first()[size_ - 1]; }
  timer_entry* begin() noexcept { return first(); }
  timer_entry* end() noexcept { return first() + size_; }

  // Makes room for n entries. If it throws std::bad_alloc, nothing has changed.
  void reserve(std::size_t n) {
    if (n > capacity_ && !resize(n)) throw std::bad_alloc();
  }

  // Gives memory back, but keeps room for n entries, where n >= size(). If realloc fails, all the memory stays.
  void give_back(std::size_t n) noexcept { (void)resize(n); }

  void push_back(timer_entry e) noexcept { first()[size_++] = e; }  // the caller has made room
  void pop_back() noexcept { --size_; }
  void shrink(std::size_t n) noexcept { size_ = n; }

 private:
  static constexpr std::size_t line = 64;

  // Returns where entry 0 begins in the block, so that entry 1 begins a cache line.
  static std::size_t offset_in(const std::byte* block) noexcept {
    return -(reinterpret_cast<std::uintptr_t>(block) + sizeof(timer_entry)) % line;
  }
  bool resize(std::size_t n) noexcept {
    auto* resized = static_cast<std::byte*>(std::realloc(block_, n * sizeof(timer_entry) + line));
    if (!resized) return false;
    std::size_t offset = offset_in(resized);
    if (offset != offset_) std::memmove(resized + offset, resized + offset_, size_ * sizeof(timer_entry));
    block_ = resized;
    offset_ = offset;
    capacity_ = n;
    return true;
  }

  timer_entry* first() noexcept { return reinterpret_cast<timer_entry*>(block_ + offset_); }

  void swap(timer_entries& o) noexcept {
    std::swap(block_, o.block_);
    std::swap(offset_, o.offset_);
    std::swap(size_, o.size_);
    std::swap(capacity_, o.capacity_);
  }

  std::byte* block_ = nullptr;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace weft::rt
