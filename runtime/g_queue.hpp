// Queues of Gs as arrays of pointers. A goroutine that waits in one is not touched: following links through a hundred
// thousand of them is a hundred thousand cache misses in a row.
#pragma once

#include "runtime/fatal.hpp"
#include "runtime/g.hpp"
#include "runtime/mapped_array.hpp"
#include "runtime/stack.hpp"

#include <algorithm>
#include <cstddef>

namespace weft::rt {

// Starts to load what is needed first: the header of a goroutine, or the top of a stack.
inline void prefetch(const G* g) noexcept {
  __builtin_prefetch(g);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(g) + 64);
}
inline void prefetch(const stack* s) noexcept {
  __builtin_prefetch(s);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(s) - 64);
}

// A FIFO. Room is made where that may fail (spawning), not where a goroutine is queued.
class g_queue {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return mask_ + 1; }

  // Makes room for n goroutines. Throws std::bad_alloc.
  void reserve(std::size_t n) {
    if (n <= capacity()) return;
    std::size_t larger = capacity();
    while (larger < n) larger *= 2;
    mapped_array<G*> fresh(larger);
    for (std::size_t i = 0; i < size_; ++i) fresh[i] = at(head_ + i);
    heap_ = std::move(fresh);
    mask_ = larger - 1;
    head_ = 0;
  }

  void push_back(G* g) noexcept {
    WEFT_ASSERT(size_ <= mask_, "a queue has room for {} goroutines only", capacity());
    at(head_ + size_++) = g;
  }

  // Puts them before all others, in their order.
  void push_front(g_list& list) noexcept {
    WEFT_ASSERT(size_ + list.size() <= capacity(), "a queue has room for {} goroutines only", capacity());
    head_ -= list.size();
    size_ += list.size();
    for (std::size_t i = head_; G* g = list.pop_front(); ++i) at(i) = g;
  }

  G* pop_front() noexcept {
    if (size_ == 0) return nullptr;
    G* g = at(head_++);
    --size_;
    return g;
  }

  void clear() noexcept { size_ = 0; }

  // If nothing is queued, gives the memory back to the system. The capacity stays.
  void release_unused() noexcept {
    if (size_ == 0 && heap_.data()) heap_.release_beyond(0);
  }

 private:
  static constexpr std::size_t first_capacity = 256;

  G*& at(std::size_t i) noexcept { return (heap_.data() ? heap_.data() : first_)[i & mask_]; }

  G* first_[first_capacity] = {};
  mapped_array<G*> heap_;
  std::size_t mask_ = first_capacity - 1;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

// A LIFO of fixed size, for a P's free Gs and its free stacks.
template <class T, std::size_t Capacity>
class small_stack {
 public:
  bool full() const noexcept { return size_ == Capacity; }
  std::size_t size() const noexcept { return size_; }
  void push(T* v) noexcept { values_[size_++] = v; }
  T* pop() noexcept {
    if (size_ == 0) return nullptr;
    T* v = values_[--size_];
    if (size_ > 0) prefetch(values_[size_ - 1]);
    return v;
  }
  // Moves the n that were pushed first to `out`; they are the coldest.
  void drop_oldest(std::size_t n, T** out) noexcept {
    std::copy_n(values_, n, out);
    std::copy(values_ + n, values_ + size_, values_);
    size_ -= n;
  }

 private:
  T* values_[Capacity] = {};
  std::size_t size_ = 0;
};

}  // namespace weft::rt
