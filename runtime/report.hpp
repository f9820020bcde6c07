// What the runtime says about goroutines when something ends: heads, traces, and where they were started. A report is
// written to a descriptor.
//
// A report may be needed where there is little stack, and where the heap may be in any state. So its own memory comes
// from mmap, or is a reserve if the system has none left, and only demangling allocates.
#pragma once

#include "runtime/fatal.hpp"
#include "runtime/symbols.hpp"
#include "runtime/traceback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace weft::rt {

// Demangling needs the heap, and some 100 KiB of stack in the worst case.
enum class names : std::uint8_t { demangled, mangled };

class report {
 public:
  // Writes to fd: write_all, or write_without_waiting.
  using writer = void (*)(int fd, std::string_view text) noexcept;
  // Names stay mangled, whatever is wanted, if little stack is left.
  report(int fd, names wanted, writer out = write_all) noexcept;
  ~report();
  report(const report&) = delete;
  report& operator=(const report&) = delete;

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) noexcept {
    if (!memory_) return;
    write("", format_line(format, std::forward<Args>(args)...));
  }

  // Writes the function, the offset, and the file with the address that addr2line takes.
  void frame(std::string_view before, trace_frame f) noexcept;
  void frames(const trace& t) noexcept;  // without the runtime's own frames at either end
  void all_frames(const trace& t) noexcept;
  // Returns a hash of what frames() shows. It is the same for traces that differ only in the runtime's own way from the
  // program's call to the wait.
  std::uint64_t hash_of_shown(const trace& t) noexcept;
  void started_by(const void* spawn_pc) noexcept;  // nothing if that is not known

  // Returns the name of a function or of a type, demangled if that is wanted. It is valid until the next call.
  std::string_view readable(const char* mangled) noexcept;

  // Returns the function around f, with its mangled name.
  symbol symbol_of(trace_frame f) noexcept { return memory_ ? find(f).what : symbol{}; }

  // Returns room for one trace, which takes 1 KiB and so need not lie on a small stack. Null: there is no memory.
  trace* scratch() noexcept { return memory_ ? &memory_->scratch : nullptr; }

 private:
  struct place {
    trace_frame at;
    symbol what;
    bool is_own = false;    // the runtime's, and not a function that a program calls
    std::string_view text;  // what frame() says of it; empty: not asked for yet, or there is no room to keep it
  };
  struct memory {
    symbol_finder symbols;
    place known[512];  // many goroutines, few places
    std::size_t texts_used = 0;
    char texts[128 * 1024];
    trace scratch;
    char line[2048];
    char* demangled = nullptr;
    std::size_t used = 0;
    char out[16384];
  };

  static std::byte* reserve() noexcept;
  static void* borrow_reserve() noexcept;

  place& find(trace_frame f) noexcept;
  std::size_t first_shown(const trace& t) noexcept;
  std::string_view describe(const place& p) noexcept;
  void frames(const trace& t, std::size_t begin, std::size_t end) noexcept;
  template <class... Args>
  std::string_view format_line(fmt::format_string<Args...> format, Args&&... args) noexcept {
    auto r = fmt::format_to_n(memory_->line, sizeof memory_->line, format, std::forward<Args>(args)...);
    return {memory_->line, std::min(r.size, sizeof memory_->line)};
  }
  void write(std::string_view before, std::string_view text) noexcept;
  void flush() noexcept;

  int fd_;
  writer write_out_;
  bool demangle_;
  memory* memory_;
};

// A goroutine's name, in quotes. Control characters are shown as '?': a name that came from outside must not look like
// lines of the report.
struct quoted_name {
  std::string_view name;
};

// "12 'name'", or "12" if it has none.
struct goroutine_name {
  explicit goroutine_name(const G* g) noexcept : goroutine_name(g->id, g->name) {}
  goroutine_name(std::uint64_t number, const char* called) noexcept : id(number), name(called) {}
  std::uint64_t id;
  const char* name;
};

}  // namespace weft::rt

template <>
struct fmt::formatter<weft::rt::quoted_name> {
  constexpr auto parse(format_parse_context& c) { return c.begin(); }
  auto format(const weft::rt::quoted_name& q, format_context& c) const {
    auto out = c.out();
    *out++ = '\'';
    for (char each : q.name) *out++ = static_cast<unsigned char>(each) < ' ' || each == '\x7f' ? '?' : each;
    *out++ = '\'';
    return out;
  }
};

template <>
struct fmt::formatter<weft::rt::goroutine_name> {
  constexpr auto parse(format_parse_context& c) { return c.begin(); }
  auto format(const weft::rt::goroutine_name& g, format_context& c) const {
    return *g.name ? fmt::format_to(c.out(), "{} {}", g.id, weft::rt::quoted_name{g.name})
                   : fmt::format_to(c.out(), "{}", g.id);
  }
};
