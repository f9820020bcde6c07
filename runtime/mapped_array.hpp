// An array in memory straight from the kernel. Memory is used only as it is touched, and memory that is not needed any
// more can be given back while the room stays. For lists that must never fail to take one more element.
#pragma once

#include "runtime/release_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

namespace weft::rt {

template <class T>
  requires std::is_trivially_copyable_v<T>
class mapped_array {
 public:
  constexpr mapped_array() noexcept = default;
  explicit mapped_array(std::size_t n) : capacity_((n * sizeof(T) + page - 1) / page * page / sizeof(T)) {
    void* p = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(p);
    // A thread that adds an element waits for as few pages as possible: for one large page, not for 512 small ones.
    if (bytes() >= 2 * huge_page) ::madvise(p, bytes(), MADV_HUGEPAGE);
  }
  mapped_array(mapped_array&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), capacity_(std::exchange(o.capacity_, 0)) {}
  mapped_array& operator=(mapped_array&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(capacity_, o.capacity_);
    return *this;
  }
  constexpr ~mapped_array() {
    if (data_) ::munmap(data_, bytes());
  }

  std::size_t capacity() const noexcept { return capacity_; }
  T* data() noexcept { return data_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }

  // Makes room for n elements, and keeps the first `used`. Throws std::bad_alloc.
  void reserve(std::size_t n, std::size_t used) {
    if (n <= capacity_) return;
    mapped_array larger(std::max(n, 2 * capacity_));
    if (used > 0) std::memcpy(larger.data_, data_, used * sizeof(T));
    std::swap(*this, larger);
  }

  // Gives back the memory behind the first `used` elements, which alone are still needed.
  void release_beyond(std::size_t used) noexcept {
    std::size_t from = (used * sizeof(T) + page - 1) / page * page;
    if (from < bytes()) release_memory(reinterpret_cast<std::byte*>(data_) + from, bytes() - from);
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t huge_page = 2 << 20;
  static_assert(page % sizeof(T) == 0);
  std::size_t bytes() const noexcept { return capacity_ * sizeof(T); }

  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace weft::rt
