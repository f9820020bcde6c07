// A list of bounded length in memory straight from the kernel, for code that ends the process or stops all goroutines,
// when the heap may be in any state. mapped_array is for lists that grow.
#pragma once

#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <utility>

namespace weft::rt {

// Takes memory only as it is used. If the kernel has none, the list has no room at all.
template <class T>
class mapped_list {
 public:
  mapped_list() noexcept = default;
  explicit mapped_list(std::size_t n) noexcept {
    if (n == 0) return;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* at = ::mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) return;
    first_ = static_cast<T*>(at);
    room_ = n;
  }
  ~mapped_list() {
    if (first_) ::munmap(first_, room_ * sizeof(T));
  }
  mapped_list& operator=(mapped_list&& o) noexcept {
    std::swap(first_, o.first_);
    std::swap(room_, o.room_);
    std::swap(used_, o.used_);
    return *this;
  }

  void add(const T& e) noexcept {
    if (used_ < room_) first_[used_++] = e;
  }
  std::size_t room_left() const noexcept { return room_ - used_; }
  std::span<T> all() const noexcept { return {first_, used_}; }

 private:
  T* first_ = nullptr;
  std::size_t room_ = 0, used_ = 0;
};

}  // namespace weft::rt
