// Three files lead to the quota:
//   /proc/self/cgroup      "0::/a/b" (v2) or "4:cpu,cpuacct:/a/b" (v1): where in the hierarchy the process is
//   /proc/self/mountinfo   where the hierarchy is mounted, and which part of it: in a container often only "/a"
//   cpu.max (v2), cpu.cfs_quota_us and cpu.cfs_period_us (v1) in that folder and each one above it
// Anything that does not look as it should counts as no quota, because the process must run on a strange system, too.
// But a process that has run out of descriptors or memory keeps the quota that it had: read_file throws then.

#include "runtime/cgroup.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weft::rt {

namespace {

// Returns the file's contents, or "" if it does not exist or cannot be read.
std::string read_file(const std::string& path) {
  struct descriptor {
    int fd;
    ~descriptor() {
      if (fd >= 0) ::close(fd);
    }
  };
  const descriptor in{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  std::string text;
  char part[4096];
  ssize_t n = -1;
  while (in.fd >= 0 && (n = ::read(in.fd, part, sizeof part)) > 0) text.append(part, static_cast<std::size_t>(n));
  return n == 0 ? text : std::string();
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view without_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Parses a text that is a number and nothing else.
std::optional<long long> number(std::string_view text) {
  long long v = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size()) return {};
  return v;
}

unsigned processors(std::optional<long long> quota, std::optional<long long> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;  // in v1, -1 means that there is none
  long long n = *quota / *period + (*quota % *period != 0);
  return n > 1'000'000 ? 0 : static_cast<unsigned>(n);
}

// "max 100000" or "150000 100000"
unsigned quota_v2(const std::string& folder) {
  std::string text = read_file(folder + "/cpu.max");
  auto words = split(without_newline(text), ' ');
  return words.size() == 2 ? processors(number(words[0]), number(words[1])) : 0;
}

unsigned quota_v1(const std::string& folder) {
  std::string quota = read_file(folder + "/cpu.cfs_quota_us"), period = read_file(folder + "/cpu.cfs_period_us");
  return processors(number(without_newline(quota)), number(without_newline(period)));
}

// The kernel writes space, tab, newline and backslash in paths as \040 etc.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct mount {
  std::string part;   // which part of the hierarchy is mounted
  std::string point;  // where it is mounted
};

// Whether `path` is `part` or lies below it.
bool covers(std::string_view part, std::string_view path) {
  if (part == "/") return true;
  return path.starts_with(part) && (path.size() == part.size() || path[part.size()] == '/');
}

// "31 23 0:28 /part /point rw,relatime shared:9 - cgroup2 name rw,cpu". The number of fields before the dash varies.
// A hierarchy may be mounted several times: in a container, once more as a part of the host's file system. Returns the
// mount that shows most of what lies above `path`; if none shows it, the first.
std::optional<mount> find_mount(const std::string& mountinfo, bool v2, std::string_view path) {
  std::optional<mount> found;
  for (std::string_view line : split(mountinfo, '\n')) {
    auto fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    if (v2 ? dash[1] != "cgroup2" : dash[1] != "cgroup" || !has(split(dash[3], ','), "cpu")) continue;
    mount m{unescape(fields[3]), unescape(fields[4])};
    const bool shows = covers(m.part, path);
    if (found && (!shows || (covers(found->part, path) && found->part.size() <= m.part.size()))) continue;
    found = std::move(m);
  }
  return found;
}

// Returns `path` relative to `part`; "" is `part` itself. Also returns "" for a path outside of `part`, as another
// namespace sees it ("/../b"), or for that of a process that was moved: nothing but what is mounted can be seen.
std::string path_within(std::string_view path, std::string_view part) {
  if (!covers(part, path)) return "";
  if (part != "/") path.remove_prefix(part.size());
  if (!path.starts_with('/') || has(split(path, '/'), "..")) return "";
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

unsigned smaller(unsigned a, unsigned b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

}  // namespace

unsigned cgroup_cpu_quota(const std::string& root) {
  const std::string cgroups = read_file(root + "/proc/self/cgroup");
  const std::string mountinfo = read_file(root + "/proc/self/mountinfo");
  unsigned least = 0;
  for (std::string_view line : split(cgroups, '\n')) {
    // "number:controllers:path"; the path may contain colons
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    bool v2 = controllers.empty();
    if (!v2 && !has(split(controllers, ','), "cpu")) continue;
    const std::string_view path = line.substr(second + 1);
    auto m = find_mount(mountinfo, v2, path);
    if (!m) m = {"/", v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu"};
    const std::string point = root + m->point;
    for (std::string below = path_within(path, m->part);; below.resize(below.rfind('/'))) {
      least = smaller(least, v2 ? quota_v2(point + below) : quota_v1(point + below));
      if (below.empty()) break;
    }
  }
  return least;
}

}  // namespace weft::rt
