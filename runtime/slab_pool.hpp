// Memory for items of one kind, side by side. The memory serves items of that kind only. Where a whole block of items
// is free, its memory can be given back to the system. The pool's owner guards it with a lock.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/mapped_array.hpp"
#include "runtime/release_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace weft::rt {

// A slab is aligned to its size, and cut into blocks, of which the first is the slab's header. Slabs are only ever
// added, each after the last one, so for_each follows the links without a lock.
//
// A block whose items are all free can lose its memory (release_free). Items are then cut from it anew. A thread that
// looks at one of its old items late reads zeros.
template <class Item>
class slab_pool {
 public:
  constexpr slab_pool() noexcept = default;

  std::size_t free_count() const noexcept { return free_count_; }

  // Takes one of the free items; there must be one. The item that was put back last is the first to be used again.
  Item* take_free() noexcept { return free_[--free_count_]; }
  void take_free(Item** out, std::size_t n) noexcept {
    free_count_ -= n;
    std::copy_n(free_.data() + free_count_, n, out);
  }

  // Makes a new item, by construct(where, first). `first` is true if it is the first item at that place since the slab
  // was made, and false where a block was given back. Throws std::bad_alloc.
  template <class Construct>
  Item* make(Construct construct) {
    // Finds a block that has room, or takes the first one of a new slab.
    while (!cutting_ || cutting_->cut[block_].load(relaxed) == items_per_block) {
      if (cutting_ && ++block_ < blocks) continue;
      block_ = 1;
      if (slab* next = cutting_ ? cutting_->next.load(relaxed) : nullptr) {
        cutting_ = next;
      } else {
        add_slab();
      }
    }
    std::uint16_t i = cutting_->cut[block_].load(relaxed);
    std::uint16_t& n = cutting_->constructed[block_];
    const bool first = i == n;
    if (first) ++n;
    Item* made = construct(cutting_->place(block_, i), first);
    cutting_->cut[block_].store(static_cast<std::uint16_t>(i + 1), release);  // partner: for_each
    return made;
  }

  void put(Item* const* items, std::size_t n) noexcept {
    std::copy_n(items, n, free_.data() + free_count_);  // within the capacity: there is room for all items
    free_count_ += n;
  }

  // Gives back the memory of blocks that hold only free items, after forget(item) for each of these items.
  template <class Forget>
  void release_free(Forget forget) noexcept {
    if (free_count_ < items_per_block) return;
    for (slab* s = first_.load(relaxed); s; s = s->next.load(relaxed)) std::fill_n(s->free, blocks, std::uint16_t{0});
    Item** begin = free_.data();
    Item** end = begin + free_count_;
    std::for_each(begin, end, [](Item* i) { ++slab_of(i)->free[block_of(i)]; });
    Item** kept = std::remove_if(begin, end, [&](Item* i) {
      slab* s = slab_of(i);
      std::size_t b = block_of(i);
      if (s->free[b] != s->cut[b].load(relaxed)) return false;
      forget(i);
      return true;
    });
    if (kept == end) return;
    free_count_ = static_cast<std::size_t>(kept - begin);
    for (slab* s = first_.load(relaxed); s; s = s->next.load(relaxed)) s->release_blocks();
    free_.release_beyond(free_count_);
    cutting_ = first_.load(relaxed);
    block_ = 1;
  }

  // Visits each item that was made, free or not, in blocks that were not given back. Takes no lock.
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (slab* s = first_.load(acquire); s; s = s->next.load(acquire)) {
      for (std::size_t b = 1; b < blocks; ++b) {
        std::size_t n = s->cut[b].load(acquire);
        for (std::size_t i = 0; i < n; ++i) visit(std::launder(static_cast<Item*>(s->place(b, i))));
      }
    }
  }

 private:
  static constexpr std::size_t slab_bytes = 1024 * 1024;
  static constexpr std::size_t block_bytes = 16 * 1024;
  static constexpr std::size_t blocks = slab_bytes / block_bytes;
  static constexpr std::size_t items_per_block = block_bytes / sizeof(Item);
  static constexpr std::size_t items_per_slab = (blocks - 1) * items_per_block;

  struct slab {
    atomic<slab*> next{nullptr};
    // For each block; the first entry is not used.
    atomic<std::uint16_t> cut[blocks] = {};  // items that were made there
    std::uint16_t constructed[blocks] = {};  // the same since the slab was mapped
    std::uint16_t free[blocks] = {};         // release_free's own count

    std::byte* begin_of(std::size_t block) noexcept { return reinterpret_cast<std::byte*>(this) + block * block_bytes; }
    void* place(std::size_t block, std::size_t i) noexcept { return begin_of(block) + i * sizeof(Item); }

    void release_blocks() noexcept {
      for (std::size_t b = 1; b < blocks; ++b) {
        if (free[b] == 0 || free[b] != cut[b].load(relaxed)) continue;
        cut[b].store(0, release);
        release_memory(begin_of(b), block_bytes);
      }
    }
  };
  static_assert(sizeof(slab) <= block_bytes);

  static slab* slab_of(const Item* i) noexcept {
    return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(i) & ~(slab_bytes - 1));
  }
  static std::size_t block_of(const Item* i) noexcept {
    return reinterpret_cast<std::uintptr_t>(i) % slab_bytes / block_bytes;
  }

  void add_slab() {
    free_.reserve((slabs_ + 1) * items_per_slab, free_count_);
    // Twice as much as needed, which contains an aligned slab.
    void* at =
        ::mmap(nullptr, 2 * slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    auto begin = reinterpret_cast<std::uintptr_t>(at);
    std::uintptr_t aligned = (begin + slab_bytes - 1) & ~(slab_bytes - 1);
    if (aligned > begin) ::munmap(at, aligned - begin);
    ::munmap(reinterpret_cast<void*>(aligned + slab_bytes), begin + slab_bytes - aligned);
    auto* s = new (reinterpret_cast<void*>(aligned)) slab;
    (last_ ? last_->next : first_).store(s, release);  // partner: for_each
    last_ = cutting_ = s;
    block_ = 1;
    ++slabs_;
  }

  mapped_array<Item*> free_;  // last in, first out; has room for every item
  std::size_t free_count_ = 0;
  atomic<slab*> first_{nullptr};
  slab* last_ = nullptr;
  std::size_t slabs_ = 0;
  // Where the next item is made: no block before it has room.
  slab* cutting_ = nullptr;
  std::size_t block_ = 1;
};

}  // namespace weft::rt
