#include "runtime/report.hpp"

#include "runtime/roomy_stack.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <new>
#include <sys/mman.h>

namespace weft::rt {

namespace {

// The reserve is for one report at a time, when there is no memory to be had: what ends a process then shall be said
// all the same.
constinit atomic<bool> reserve_in_use{false};

}  // namespace

report::report(int fd, names wanted, writer out) noexcept
    : fd_(fd), write_out_(out), demangle_(wanted == names::demangled && stack_is_roomy()) {
  void* at = ::mmap(nullptr, sizeof(memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) at = borrow_reserve();
  memory_ = at ? new (at) memory : nullptr;
}

std::byte* report::reserve() noexcept {
  alignas(memory) static std::byte room[sizeof(memory)];
  return room;
}

// acquire and, where it is given back, release: the former report's use of it is over.
void* report::borrow_reserve() noexcept { return reserve_in_use.exchange(true, acquire) ? nullptr : reserve(); }

report::~report() {
  if (!memory_) return;
  flush();
  if (memory_->demangled) std::free(memory_->demangled);
  memory_->~memory();
  if (static_cast<void*>(memory_) == reserve()) {
    reserve_in_use.store(false, release);
  } else {
    ::munmap(memory_, sizeof(memory));
  }
}

// What is above a call of the scheduler is its business, and what is below a goroutine's own code is the same for all.
void report::frames(const trace& t) noexcept {
  if (!memory_) return;
  std::size_t begin = 0, end = t.size;
  while (begin < end && find(t.frames[begin]).is_scheduler) ++begin;
  while (begin < end && find(t.frames[end - 1]).is_scheduler) --end;
  frames(t, begin, end);
}

void report::all_frames(const trace& t) noexcept { frames(t, 0, t.size); }

void report::frames(const trace& t, std::size_t begin, std::size_t end) noexcept {
  for (std::size_t i = begin; i < end; ++i) {
    if (i == trace::inner && t.left_out != 0) line("    ... {} more frames ...", t.left_out);
    frame("    ", t.frames[i]);
  }
}

void report::started_by(const void* spawn_pc) noexcept {
  if (spawn_pc) frame("    started by ", {spawn_pc});
}

report::place& report::find(trace_frame f) noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  place& p = memory_->known[reinterpret_cast<std::uintptr_t>(f.inside()) * golden >> 55];
  if (p.at.pc == f.pc && p.at.is_call == f.is_call) return p;
  p = {f, memory_->symbols.find(f.inside()), false, {}};
  std::string_view name = p.what.function ? p.what.function : "";
  for (std::string_view prefix : {"_ZN4weft2rt", "_ZZN4weft2rt", "_ZN4weft6detail12_GLOBAL__N_113run_user_code"}) {
    if (name.starts_with(prefix)) p.is_scheduler = true;
  }
  return p;
}

void report::frame(std::string_view before, trace_frame f) noexcept {
  if (!memory_) return;
  place& p = find(f);
  if (!p.text.empty()) return write(before, p.text);
  std::string_view text = describe(p);
  char* kept = memory_->texts + memory_->texts_used;
  write(before, text);
  if (text.size() > sizeof memory_->texts - memory_->texts_used) return;
  memory_->texts_used += text.size();
  std::copy(text.begin(), text.end(), kept);
  p.text = {kept, text.size()};
}

std::string_view report::describe(const place& p) noexcept {
  const symbol& s = p.what;
  if (!s.object) return format_line("{}", p.at.pc);
  if (!s.function) return format_line("?  {}(+{:#x})", s.object, s.object_offset);
  std::string_view name = readable(s.function);
  constexpr std::size_t longest = sizeof memory_->line - 640;  // the file shall find room behind it
  return format_line("{}{}+{:#x}  {}(+{:#x})", name.substr(0, longest), name.size() > longest ? "..." : "",
                     s.function_offset + p.at.is_call, s.object, s.object_offset);
}

std::string_view report::readable(const char* mangled) noexcept {
  if (!memory_ || !demangle_) return mangled;
  int status = -1;
  std::free(std::exchange(memory_->demangled, abi::__cxa_demangle(mangled, nullptr, nullptr, &status)));
  return memory_->demangled ? memory_->demangled : mangled;
}

void report::write(std::string_view before, std::string_view text) noexcept {
  if (memory_->used + before.size() + text.size() + 1 > sizeof memory_->out) flush();
  char* end = std::copy(before.begin(), before.end(), memory_->out + memory_->used);
  end = std::copy(text.begin(), text.end(), end);
  *end++ = '\n';
  memory_->used = static_cast<std::size_t>(end - memory_->out);
}

void report::flush() noexcept {
  write_out_(fd_, {memory_->out, memory_->used});
  memory_->used = 0;
}

}  // namespace weft::rt
