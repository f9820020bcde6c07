#include "sched/dump_head.hpp"

#include "runtime/report.hpp"
#include "runtime/wait_reason.hpp"

namespace weft::rt {

namespace {

void add_duration(head_text& out, nanos d) noexcept {
  auto seconds = static_cast<double>(d) / second;
  if (d < second) {
    out.add("{} ms", d / millisecond);
  } else if (seconds < 120) {
    out.add("{:.1f} s", seconds);
  } else if (seconds < 7200) {
    out.add("{:.0f} minutes", seconds / 60);
  } else {
    out.add("{:.1f} hours", seconds / 3600);
  }
}

// Goroutines note when they begin to wait by sysmon's coarse clock, which may be this far behind.
constexpr nanos shortest_wait_shown = 100 * millisecond;

bool waits(g_state s) noexcept { return s == g_state::waiting || s == g_state::syscall; }

nanos waited(const seen_goroutine& g, nanos now) noexcept {
  return g.wait_since != 0 && waits(g.state) ? std::max<nanos>(now - g.wait_since, 0) : 0;
}

void add_state(head_text& out, std::span<const seen_goroutine> group, nanos now) noexcept {
  const seen_goroutine& g = group[0];
  out.add("[{}", g.state == g_state::waiting ? describe(g.reason) : describe(g.state));
  if (waits(g.state)) {
    nanos shortest = forever, longest = 0;
    for (const seen_goroutine& e : group) {
      nanos d = waited(e, now);
      shortest = std::min(shortest, d);
      longest = std::max(longest, d);
    }
    if (longest >= shortest_wait_shown) {
      out.add(", ");
      if (longest - shortest >= shortest_wait_shown) {
        add_duration(out, shortest);
        out.add(" to ");
      }
      add_duration(out, longest);
    }
  }
  out.add("{}]", describe_tie(g.marks));
}

// Adds the range of consecutive numbers at the beginning of `group`, such as "7-12", and returns its length. by_name:
// the range ends where the name changes.
std::size_t add_range(auto& out, std::span<const seen_goroutine> group, bool by_name) noexcept {
  const std::uint64_t first = group[0].id;
  const std::string_view name = group[0].name;
  std::size_t n = 1;
  while (n < group.size() && group[n].id == first + n && (!by_name || name == group[n].name)) ++n;
  out.add("{}", first);
  if (n > 1) out.add("{}{}", n == 2 ? ", " : "-", first + n - 1);
  return n;
}

// Adds the numbers, such as "3, 7-12, 15, ...". False: not all of them were added.
bool add_ids(head_text& out, std::span<const seen_goroutine> group) noexcept {
  constexpr int most = 8;
  int shown = 0;
  for (; !group.empty(); ++shown) {
    if (shown == most) {
      out.add(", ...");
      return false;
    }
    if (shown) out.add(", ");
    group = group.subspan(add_range(out, group, false));
  }
  return true;
}

// Adds the names, such as " 'worker', 'reader', ...": each name once, in the order of ids. True if all goroutines have
// the same name.
bool add_names(head_text& out, std::span<const seen_goroutine> group) noexcept {
  constexpr std::size_t most = 4;
  std::string_view shown[most];
  std::size_t n = 0;
  bool same = true;
  for (const seen_goroutine& e : group) {
    std::string_view name = e.name;
    same &= name == group[0].name;
    if (name.empty() || std::find(shown, shown + n, name) != shown + n) continue;
    if (n == most) {
      out.add(", ...");
      return false;
    }
    out.add("{} {}", n ? "," : "", quoted_name{name});
    shown[n++] = name;
  }
  return same;
}

}  // namespace

const char* describe_tie(std::uint8_t marks) noexcept {
  if (marks & mark::locked_to_thread) return ", locked to thread";
  return marks & mark::pinned_to_thread ? ", pinned to thread" : "";
}

head_text head_of(std::span<const seen_goroutine> group, nanos now, bool* says_all) noexcept {
  head_text head;
  *says_all = true;
  if (group.size() == 1) {
    head.add("goroutine {} ", goroutine_name(group[0].id, group[0].name));
  } else {
    head.add("{} goroutines ", group.size());
    *says_all = add_ids(head, group);
    *says_all &= add_names(head, group);
    head.add(" ");
  }
  add_state(head, group, now);
  return head;
}

short_text<160> some_of(std::span<const seen_goroutine>* left) noexcept {
  constexpr std::size_t enough = 80;
  short_text<160> line;
  while (!left->empty() && line.get().size() < enough) {
    if (!line.get().empty()) line.add(", ");
    const std::string_view name = left->front().name;
    const std::size_t n = add_range(line, *left, true);
    if (!name.empty()) line.add(" {}", quoted_name{name});
    *left = left->subspan(n);
  }
  return line;
}

}  // namespace weft::rt
