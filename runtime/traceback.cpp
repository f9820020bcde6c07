#include "runtime/traceback.hpp"

#include "runtime/own_descriptor.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack.hpp"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <algorithm>
#include <cstring>

namespace weft::rt {

namespace {

// No stack has so many frames, but wrong unwind tables may lead round in a circle.
constexpr std::size_t too_many = 1 << 20;

class collector {
 public:
  explicit collector(trace* out) noexcept : out_(out) { out->size = out->left_out = 0; }

  // False: there are too many frames.
  bool add(trace_frame f) noexcept {
    if (out_->size < trace::inner) {
      out_->frames[out_->size++] = f;
      return true;
    }
    ring()[beyond_++ % trace::outer] = f;
    return beyond_ < too_many;
  }

  void finish() noexcept {
    out_->size += std::min(beyond_, trace::outer);
    if (beyond_ <= trace::outer) return;
    out_->left_out = beyond_ - trace::outer;
    std::rotate(ring(), ring() + beyond_ % trace::outer, ring() + trace::outer);
  }

 private:
  trace_frame* ring() noexcept { return out_->frames + trace::inner; }

  trace* out_;
  std::size_t beyond_ = 0;
};

void walk(unw_cursor_t* cursor, trace* out, std::size_t skip, bool first_is_call) noexcept {
  collector frames(out);
  bool is_call = first_is_call;
  do {
    unw_word_t pc = 0;
    if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 || pc == 0) break;
    if (skip > 0) {
      --skip;
      continue;
    }
    if (!frames.add({reinterpret_cast<const void*>(pc), is_call})) break;
    is_call = true;
  } while (unw_step(cursor) > 0);
  frames.finish();
}

}  // namespace

WEFT_NOINLINE void trace_here(trace* out, std::size_t skip) noexcept {
  out->size = out->left_out = 0;
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return;
  walk(&cursor, out, skip + 1, true);
}

void trace_from(const call_site& at, const G* g, trace* out) noexcept {
  out->size = out->left_out = 0;
#if defined(__x86_64__)
  (void)g;
  unw_context_t context;
  std::memset(&context, 0, sizeof context);
  context.uc_mcontext.gregs[REG_RBP] = reinterpret_cast<greg_t>(at.frame_pointer);
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(at.pc);
  context.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(at.stack_pointer);
  unw_cursor_t cursor;
  if (unw_init_local(&cursor, &context) != 0) return;
  walk(&cursor, out, 0, true);
#else
  // Follows the chain of frame records: {previous, return address}. Code without frame pointers may have left anything
  // there.
  collector frames(out);
  const void* pc = at.pc;
  const void* below = at.stack_pointer;
  auto* frame = static_cast<void* const*>(at.frame_pointer);
  while (pc && frames.add({pc})) {
    if (frame < below || reinterpret_cast<std::uintptr_t>(frame) % sizeof(void*) != 0) break;
    if (reinterpret_cast<const std::byte*>(frame + 2) > g->own_stack->hi) break;
    pc = frame[1];
    below = frame + 1;
    frame = static_cast<void* const*>(frame[0]);
  }
  frames.finish();
#endif
}

void trace_parked(const G* g, trace* out) noexcept {
  out->size = out->left_out = 0;
  // switch_to notes the address of its frame. The caller's frame pointer and the return address lie there, and above
  // them the caller's stack. Unwinding starts in that caller.
  if (auto* frame = static_cast<void* const*>(g->park_frame)) trace_from({frame[0], frame[1], frame + 2}, g, out);
}

void trace_context(void* context, trace* out) noexcept {
  out->size = out->left_out = 0;
  unw_cursor_t cursor;
  auto* uc = static_cast<unw_context_t*>(context);  // libunwind's context is the kernel's on these machines
  if (unw_init_local2(&cursor, uc, UNW_INIT_SIGNAL_FRAME) != 0) return;
  walk(&cursor, out, 0, false);
}

void prepare_traces() noexcept {
  // libunwind asks the kernel which pages there are, by system calls whose addresses Valgrind reports as errors.
  if (under_valgrind) return;
  const standard_streams_taken ours;  // libunwind keeps a pipe for that
  trace t;
  trace_here(&t, 0);
}

}  // namespace weft::rt
