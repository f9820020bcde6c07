#include "runtime/report.hpp"

#include "runtime/roomy_stack.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cxxabi.h>
#include <new>
#include <sys/mman.h>
#include <system_error>

namespace weft::rt {

namespace {

// The reserve serves one report at a time when no memory can be had, so that the process tells even then why it ends.
constinit atomic<bool> reserve_in_use{false};

// True for a function of weft's that is not a template, and so has none of the program's code inlined, like
// _ZN 4weft 5mutex 4lock E.
bool is_of_the_library(std::string_view mangled) noexcept {
  const std::size_t begin = mangled.starts_with("_ZNK") ? 4 : 3;
  if (!mangled.starts_with("_ZN") || !mangled.substr(begin).starts_with("4weft")) return false;
  for (std::size_t at = begin; at < mangled.size();) {
    std::size_t length = 0;
    const auto [digits_end, error] = std::from_chars(&mangled[at], mangled.end(), length);
    if (error != std::errc()) return mangled[at] == 'E';
    at = static_cast<std::size_t>(digits_end - mangled.data()) + length;
  }
  return false;
}

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

// acquire here, and release where the reserve is given back: the previous report no longer uses it.
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

// Leaves out the frames inside a call of weft's, which are weft's business, and the frames that lead to a goroutine's
// own code, which are the same for all goroutines.
void report::frames(const trace& t) noexcept {
  if (!memory_) return;
  std::size_t begin = first_shown(t), end = t.size;
  while (begin < end && find(t.frames[end - 1]).is_own) --end;
  frames(t, begin, end);
}

std::size_t report::first_shown(const trace& t) noexcept {
  std::size_t i = 0;
  while (i < t.size && find(t.frames[i]).is_own) ++i;
  return i;
}

std::uint64_t report::hash_of_shown(const trace& t) noexcept {
  std::uint64_t hash = t.left_out;
  if (!memory_) return hash;
  std::size_t first = first_shown(t);
  if (first < t.size) {
    // This may be the function of weft's that called what is not shown, from one place if it had a lock at once, and
    // from another if not. So only the function counts.
    const symbol s = symbol_of(t.frames[first]);
    if (s.function && is_of_the_library(s.function)) {
      hash = hash_on(hash, reinterpret_cast<std::uintptr_t>(t.frames[first].pc) - s.function_offset);
      ++first;
    }
  }
  return hash_places(t, first, hash);
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
  for (std::string_view prefix : {"_ZN4weft2rt", "_ZZN4weft2rt", "_ZN4weft6detail12_GLOBAL__N_1"}) {
    if (name.starts_with(prefix)) p.is_own = true;
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
  constexpr std::size_t longest = sizeof memory_->line - 640;  // leaves room for the file
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
