#include "runtime/traceback.hpp"

#include "runtime/stack.hpp"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace weft::rt {

namespace {

std::size_t walk(unw_cursor_t* cursor, trace_frame* out, std::size_t capacity, std::size_t skip) noexcept {
  std::size_t n = 0;
  do {
    unw_word_t pc = 0;
    if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 || pc == 0) break;
    if (skip > 0) {
      --skip;
      continue;
    }
    out[n++] = {reinterpret_cast<const void*>(pc)};
  } while (n < capacity && unw_step(cursor) > 0);
  return n;
}

}  // namespace

std::size_t trace_here(trace_frame* out, std::size_t capacity, std::size_t skip) noexcept {
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  return walk(&cursor, out, capacity, skip + 1);
}

std::size_t trace_parked(const G* g, trace_frame* out, std::size_t capacity) noexcept {
  // switch_to keeps its frame address: there lie the caller's frame pointer and the address to return to, and
  // above them the caller's stack. Unwinding starts in that caller.
  auto* frame = static_cast<void* const*>(g->park_frame);
  if (!frame) return 0;
  unw_context_t context;
  std::memset(&context, 0, sizeof context);
#if defined(__x86_64__)
  context.uc_mcontext.gregs[REG_RBP] = reinterpret_cast<greg_t>(frame[0]);
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(frame[1]);
  context.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(frame + 2);
  unw_cursor_t cursor;
  if (unw_init_local(&cursor, &context) != 0) return 0;
  return walk(&cursor, out, capacity, 0);
#else
  // The chain of frame records: {previous, return address}.
  std::size_t n = 0;
  while (n < capacity && frame && reinterpret_cast<const std::byte*>(frame) < g->own_stack->hi) {
    if (frame[1] == nullptr) break;
    out[n++] = {frame[1]};
    frame = static_cast<void* const*>(frame[0]);
  }
  return n;
#endif
}

std::size_t trace_context(void* context, trace_frame* out, std::size_t capacity) noexcept {
  unw_cursor_t cursor;
  auto* uc = static_cast<unw_context_t*>(context);  // libunwind's context is the kernel's on these machines
  if (unw_init_local2(&cursor, uc, UNW_INIT_SIGNAL_FRAME) != 0) return 0;
  return walk(&cursor, out, capacity, 0);
}

std::string_view symbolize(const void* pc, char* buffer, std::size_t capacity) noexcept {
  Dl_info info{};
  // A return address may be the first byte of the next function: look one before.
  const void* inside = static_cast<const char*>(pc) - 1;
  bool found = dladdr(inside, &info) != 0;
  auto put = [&](auto format, const auto&... args) {
    auto r = fmt::format_to_n(buffer, capacity - 1, fmt::runtime(format), args...);
    std::size_t n = r.size < capacity - 1 ? r.size : capacity - 1;
    buffer[n] = '\0';
    return std::string_view(buffer, n);
  };
  if (found && info.dli_sname) {
    auto offset = static_cast<const char*>(pc) - static_cast<const char*>(info.dli_saddr);
    int status = -1;
    char* name = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    auto text = put("{}+{:#x}", static_cast<const char*>(status == 0 ? name : info.dli_sname), offset);
    std::free(name);
    return text;
  }
  if (found && info.dli_fname) {
    auto offset = static_cast<const char*>(pc) - static_cast<const char*>(info.dli_fbase);
    return put("{}({:#x})", info.dli_fname, offset);
  }
  return put("{}", pc);
}

}  // namespace weft::rt
