#include "sched/blocks.hpp"

#include "runtime/sanitizer.hpp"

#include <new>

namespace weft::rt {

namespace {

// These shall see each use after the free.
const bool no_caches = asan_running() || tsan_running() || under_valgrind;

inline P* cache_owner(M* m) noexcept { return WEFT_UNLIKELY(no_caches) ? nullptr : m->p.load(relaxed); }

}  // namespace

void* block_take() {
  M* m = try_enter_runtime();
  if (WEFT_LIKELY(m != nullptr)) {
    P* p = cache_owner(m);
    free_block* b = p ? p->free_blocks.pop() : nullptr;
    leave_runtime(m);
    if (WEFT_LIKELY(b != nullptr)) return b;
  }
  return ::operator new(block_size);
}

void block_put(void* block) noexcept {
  M* m = try_enter_runtime();
  if (WEFT_LIKELY(m != nullptr)) {
    P* p = cache_owner(m);
    bool kept = p && p->free_blocks.size() < free_blocks_at_most;
    if (kept) p->free_blocks.push(block);
    leave_runtime(m);
    if (WEFT_LIKELY(kept)) return;
  }
  ::operator delete(block);
}

void free_all(free_block_list& blocks) noexcept {
  while (free_block* b = blocks.pop()) ::operator delete(b);
}

}  // namespace weft::rt
