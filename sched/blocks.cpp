#include "sched/blocks.hpp"

#include "runtime/lock.hpp"
#include "runtime/never_destroyed.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/slab_pool.hpp"

#include <new>

namespace weft::rt {

namespace {

// AddressSanitizer, ThreadSanitizer, Valgrind and the tests' operator delete must see each use after the free.
const bool no_pools = asan_running() || tsan_running() || under_valgrind || free_blocks_at_most == 0;

constexpr std::size_t blocks_in_batch = 32;  // how many blocks move to a P that has none

template <std::size_t Size>
class block_pool {
 public:
  // Returns one block, and fills `cache` with a batch. cache may be null.
  void* take(free_block_list* cache) {
    lock_guard hold(mutex_);
    while (cache && cache->size() < blocks_in_batch) cache->push(take_one());
    return take_one();
  }

  // Takes n blocks from `cache`.
  void put_from(free_block_list& cache, std::size_t n) noexcept {
    lock_guard hold(mutex_);
    for (; n > 0; --n) {
      auto* b = static_cast<memory*>(static_cast<void*>(cache.pop()));
      pool_.put(&b, 1);
    }
  }

  void release_free() noexcept {
    lock_guard hold(mutex_);
    pool_.release_free([](const memory*) {});
  }

 private:
  struct memory {
    std::byte bytes[Size];
  };
  memory* take_one() {
    if (pool_.free_count() > 0) return pool_.take_free();
    return pool_.make([](void* at, bool) { return static_cast<memory*>(at); });
  }

  lock mutex_{lock_rank::stacks};
  slab_pool<memory> pool_;
};

constinit never_destroyed<block_pool<block_sizes[0]>> small_blocks;
constinit never_destroyed<block_pool<block_sizes[1]>> large_blocks;
static_assert(block_sizes.size() == 2);

std::size_t kind_of(std::size_t size) noexcept { return size <= block_sizes[0] ? 0 : 1; }

// Returns f(the pool of this kind).
template <class F>
decltype(auto) with_pool(std::size_t kind, F f) {
  return kind == 0 ? f(small_blocks.value) : f(large_blocks.value);
}

// m is inside the runtime, which this function leaves; or null.
WEFT_NOINLINE void* take_from_pool(M* m, std::size_t kind) {
  runtime_scope scope(m);
  P* p = p_of(m);
  return with_pool(kind, [&](auto& pool) { return pool.take(p ? &p->free_blocks[kind] : nullptr); });
}

// For when the P's cache is full, or when there is no P. m: as in take_from_pool.
WEFT_NOINLINE void put_into_pool(M* m, void* block, std::size_t kind) noexcept {
  runtime_scope scope(m);
  P* p = p_of(m);
  free_block_list none;
  free_block_list& cache = p ? p->free_blocks[kind] : none;
  cache.push(block);
  with_pool(kind, [&](auto& pool) { pool.put_from(cache, (cache.size() + 1) / 2); });
}

}  // namespace

void* block_take(std::size_t size) {
  const std::size_t kind = kind_of(size);
  if (WEFT_UNLIKELY(no_pools)) return ::operator new(block_sizes[kind]);
  M* m = try_enter_runtime();
  P* p = p_of(m);
  free_block* b = p ? p->free_blocks[kind].pop() : nullptr;
  if (WEFT_UNLIKELY(!b)) return take_from_pool(m, kind);
  leave_runtime(m);
  return b;
}

void block_put(void* block, std::size_t size) noexcept {
  const std::size_t kind = kind_of(size);
  if (WEFT_UNLIKELY(no_pools)) return ::operator delete(block);
  M* m = try_enter_runtime();
  P* p = p_of(m);
  if (WEFT_UNLIKELY(!p || p->free_blocks[kind].size() >= free_blocks_at_most)) return put_into_pool(m, block, kind);
  p->free_blocks[kind].push(block);
  leave_runtime(m);
}

void empty_block_caches(P* p) noexcept {
  for (std::size_t kind = 0; kind < block_sizes.size(); ++kind) {
    free_block_list& cache = p->free_blocks[kind];
    with_pool(kind, [&](auto& pool) { pool.put_from(cache, cache.size()); });
  }
}

void blocks_release_free() noexcept {
  small_blocks.value.release_free();
  large_blocks.value.release_free();
}

}  // namespace weft::rt
