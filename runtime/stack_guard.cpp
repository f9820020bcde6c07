#include "runtime/stack_guard.hpp"

#include "runtime/advise.hpp"
#include "runtime/fatal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

namespace weft::rt {

namespace {

constexpr std::uint64_t canary_value = 0x7765667463616e61;  // "weftcana"
constexpr std::size_t canary_words = 8;

// What the kernel can do. All accesses are relaxed.
constinit atomic<guard_kind> best{guard_kind::madvise};
constinit atomic<bool> madvise_unknown{false};

std::size_t max_maps() noexcept {
  std::size_t maps = 65530;
  if (std::FILE* f = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(f, "%zu", &maps) != 1) maps = 65530;
    std::fclose(f);
  }
  return maps;
}

// Each such guard makes two maps of one. Half of all maps are left to the program: for its own mappings, for libraries,
// for malloc. Some of the other half are kept for the lowest stacks of slabs.
bool mprotect_guard(std::byte* lo, bool lowest) noexcept {
  static const std::size_t budget = max_maps() / 4;
  std::size_t limit = lowest ? budget : budget - budget / 8;
  return guards_installed(guard_kind::mprotect) < limit && ::mprotect(lo, page, PROT_NONE) == 0;
}

void warn_of_canaries() noexcept {
  static constinit atomic<bool> said{false};
  if (said.load(relaxed) || said.exchange(true, relaxed)) return;
  char text[384];
  auto r = fmt::format_to_n(
      text, sizeof text,
      "weft: warning: {} stacks have a guard page, further ones have none: their overflow is noticed when the "
      "goroutine "
      "parks, yields or ends, and has overwritten other memory if it was deep. More guard pages: Linux 6.13, or "
      "a higher vm.max_map_count.\n",
      guards_installed(guard_kind::madvise) + guards_installed(guard_kind::mprotect));
  print_error({text, std::min(r.size, sizeof text)});
}

guard_kind try_kinds(std::byte* lo, bool lowest) noexcept {
  guard_kind limit = best.load(relaxed);
  if (limit == guard_kind::madvise && !madvise_unknown.load(relaxed)) {
    if (::madvise(lo, page, MADV_GUARD_INSTALL) == 0) return guard_kind::madvise;
    // Either the kernel is older, or the program has locked its memory (mlockall), perhaps only for now.
    if (errno == EINVAL && guards_installed(guard_kind::madvise) == 0) madvise_unknown.store(true, relaxed);
  }
  if ((limit != guard_kind::canary || lowest) && mprotect_guard(lo, lowest)) return guard_kind::mprotect;
  warn_of_canaries();
  return guard_kind::canary;
}

}  // namespace

void limit_guards(guard_kind k) noexcept { best.store(k, relaxed); }

void install_guards(std::byte* const* lo, std::size_t n, const std::byte* lowest, guard_kind* kinds) noexcept {
  std::size_t done = 0;
  if (n > 1 && best.load(relaxed) == guard_kind::madvise) done = advise_each(lo, n, MADV_GUARD_INSTALL);
  std::fill_n(kinds, done, guard_kind::madvise);
  for (std::size_t i = done; i < n; ++i) kinds[i] = try_kinds(lo[i], lo[i] == lowest);
  for (std::size_t i = 0; i < n; ++i) installed_guards[static_cast<int>(kinds[i])].fetch_add(1, relaxed);
}

bool remove_guards(std::byte* base, std::size_t bytes, const std::size_t (&count)[guard_kinds]) noexcept {
  // mprotect comes first: it may lack memory, and then nothing has changed.
  if (count[static_cast<int>(guard_kind::mprotect)] && ::mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  if (count[static_cast<int>(guard_kind::madvise)] && ::madvise(base, bytes, MADV_GUARD_REMOVE) != 0) return false;
  for (int k = 0; k < guard_kinds; ++k) installed_guards[k].fetch_sub(count[k], relaxed);
  return true;
}

void write_canary(std::byte* lo) noexcept {
  std::fill_n(reinterpret_cast<std::uint64_t*>(lo), canary_words, canary_value);
}

bool canary_intact(const std::byte* lo) noexcept {
  const auto* words = reinterpret_cast<const std::uint64_t*>(lo);
  return std::all_of(words, words + canary_words, [](std::uint64_t w) { return w == canary_value; });
}

}  // namespace weft::rt
