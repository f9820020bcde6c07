#include "runtime/report.hpp"

#include "runtime/fatal.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <new>
#include <sys/mman.h>

namespace weft::rt {

namespace {

constexpr std::ptrdiff_t stack_for_demangling = 128 * 1024;

// Threads' own stacks are taken to be large.
bool stack_is_roomy() noexcept {
  const thread_state* ts = this_thread_or_null();
  const stack* s = ts && ts->g ? ts->g->own_stack : nullptr;
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return !s || here < s->lo || here >= s->hi || here - s->lo > stack_for_demangling;
}

}  // namespace

report::report(int fd, names wanted) noexcept : fd_(fd), demangle_(wanted == names::demangled && stack_is_roomy()) {
  void* at = ::mmap(nullptr, sizeof(memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory_ = at == MAP_FAILED ? nullptr : new (at) memory;
}

report::~report() {
  if (!memory_) return;
  flush();
  if (memory_->demangled) std::free(memory_->demangled);
  memory_->~memory();
  ::munmap(memory_, sizeof(memory));
}

void report::frames(const trace& t) noexcept {
  std::size_t begin = 0, end = t.size;
  while (begin < end && is_scheduler(t.frames[begin])) ++begin;
  while (begin < end && is_scheduler(t.frames[end - 1])) --end;
  frames(t, begin, end);
}

void report::all_frames(const trace& t) noexcept { frames(t, 0, t.size); }

void report::frames(const trace& t, std::size_t begin, std::size_t end) noexcept {
  for (std::size_t i = begin; i < end; ++i) {
    if (i == trace::inner && t.left_out != 0) line("    ... {} more frames ...", t.left_out);
    frame("    ", t.frames[i]);
  }
}

// What is above a call of the scheduler is its business, and what is below a goroutine's own code is the same for all.
bool report::is_scheduler(trace_frame f) noexcept {
  const char* name = function_of(f);
  for (std::string_view prefix : {"_ZN4weft2rt", "_ZZN4weft2rt", "_ZN4weft6detail12_GLOBAL__N_113run_user_code"}) {
    if (name && std::string_view(name).starts_with(prefix)) return true;
  }
  return false;
}

void report::started_by(const G* g) noexcept {
  if (g->spawn_pc) frame("    started by ", {g->spawn_pc});
}

const char* report::function_of(trace_frame f) noexcept { return memory_ ? find(f.inside()).function : nullptr; }

const symbol& report::find(const void* pc) noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  known& k = memory_->cache[reinterpret_cast<std::uintptr_t>(pc) * golden >> 55];
  if (k.pc != pc) k = {pc, memory_->symbols.find(pc)};
  return k.what;
}

void report::frame(std::string_view before, trace_frame f) noexcept {
  if (!memory_) return;
  const symbol& s = find(f.inside());
  if (!s.object) return line("{}{}", before, f.pc);
  if (!s.function) return line("{}?  {}(+{:#x})", before, s.object, s.object_offset);
  std::string_view name = readable(s.function);
  constexpr std::size_t longest = sizeof memory_->line - 640;  // the file shall find room behind it
  line("{}{}{}+{:#x}  {}(+{:#x})", before, name.substr(0, longest), name.size() > longest ? "..." : "",
       s.function_offset + f.is_call, s.object, s.object_offset);
}

std::string_view report::readable(const char* mangled) noexcept {
  if (!memory_ || !demangle_) return mangled;
  int status = -1;
  std::free(std::exchange(memory_->demangled, abi::__cxa_demangle(mangled, nullptr, nullptr, &status)));
  return memory_->demangled ? memory_->demangled : mangled;
}

// The line is complete, or longer than the room for it.
void report::write_line(std::size_t wanted_size) noexcept {
  std::size_t n = std::min(wanted_size, sizeof memory_->line - 1);
  memory_->line[n++] = '\n';
  if (memory_->used + n > sizeof memory_->out) flush();
  std::copy_n(memory_->line, n, memory_->out + memory_->used);
  memory_->used += n;
}

void report::flush() noexcept {
  write_all(fd_, {memory_->out, memory_->used});
  memory_->used = 0;
}

}  // namespace weft::rt
