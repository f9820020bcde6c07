#include "api/src/environment.hpp"

#include "runtime/cpus.hpp"
#include "runtime/fatal.hpp"
#include "weft/detail/time.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weft {

namespace {

std::optional<unsigned> parse_number(std::string_view text) noexcept {
  unsigned v = 0;
  const char* end = text.data() + text.size();
  auto r = std::from_chars(text.data(), end, v);
  std::optional<unsigned> out;
  if (!text.empty() && r.ec == std::errc() && r.ptr == end) out = v;
  return out;
}

// Parses "100ms", "2s", "500us". A number alone counts milliseconds, as elsewhere in WEFT_DEBUG.
std::optional<rt::nanos> parse_duration(std::string_view text) noexcept {
  rt::nanos unit = rt::millisecond;
  for (auto [suffix, value] :
       {std::pair<std::string_view, rt::nanos>{"ms", rt::millisecond}, {"us", rt::microsecond}, {"s", rt::second}}) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    unit = value;
    break;
  }
  auto n = parse_number(text);
  if (!n) return {};
  return *n * unit;
}

void warn(std::string_view text) { rt::print_error(fmt::format("weft: warning: {}\n", text)); }

std::optional<rt::guard_kind> parse_guards(std::string_view text) noexcept {
  if (text == "madvise") return rt::guard_kind::madvise;
  if (text == "mprotect") return rt::guard_kind::mprotect;
  if (text == "canary") return rt::guard_kind::canary;
  return {};
}

// Returns WEFT_PROCS; 0 if it is not set or, with a warning, if it is bad.
unsigned procs_of_environment() {
  if (const char* env = std::getenv("WEFT_PROCS"); env && *env) {
    auto n = parse_number(env);
    if (n && *n >= 1 && *n <= rt::max_procs) return *n;
    warn(fmt::format("WEFT_PROCS={}: not a number from 1 to {}; ignored", env, rt::max_procs));
  }
  return 0;
}

// Reads WEFT_DEBUG: key=value[,key=value...], as GODEBUG.
void apply_debug(rt::scheduler_options& out) {
  const char* env = std::getenv("WEFT_DEBUG");
  if (!env) return;
  std::string_view rest = env;
  while (!rest.empty()) {
    auto comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (item.empty()) continue;
    auto equals = item.find('=');
    std::string_view key = item.substr(0, equals);
    std::string_view text = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    std::optional<unsigned> value = parse_number(text);
    if (key == "hogs") {
      if (auto threshold = parse_duration(text)) {
        out.hog_threshold = *threshold;
      } else {
        warn(fmt::format("WEFT_DEBUG: '{}': a duration was expected, as in hogs=100ms", item));
      }
    } else if (key == "guards") {
      if (auto kind = parse_guards(text)) {
        out.guards = *kind;
      } else {
        warn(fmt::format("WEFT_DEBUG: '{}': guards are madvise, mprotect or canary", item));
      }
    } else if (key != "schedtrace" && key != "scheddetail" && key != "hazard" && key != "stacks") {
      warn(
          fmt::format("WEFT_DEBUG: unknown key '{}'; known are schedtrace=<ms>, scheddetail=0|1, hogs=<duration>, "
                      "hazard=0|1, stacks=0|1, guards=madvise|mprotect|canary",
                      key));
    } else if (!value) {
      warn(fmt::format("WEFT_DEBUG: '{}': a number was expected", item));
    } else if (key == "schedtrace") {
      out.trace_period = *value * rt::millisecond;
    } else if (*value > 1) {
      warn(fmt::format("WEFT_DEBUG: '{}': 0 or 1 was expected", item));
    } else if (key == "hazard") {
      out.hazard = *value != 0;
    } else if (key == "stacks") {
      out.print_stacks = *value != 0;
      out.measure_stacks = out.measure_stacks || out.print_stacks;
    } else {
      out.trace_detail = *value != 0;
    }
  }
}

rt::nanos not_negative(std::chrono::nanoseconds d, const char* name) {
  if (d.count() < 0) throw std::invalid_argument(fmt::format("weft::options::{}: {} ns is negative", name, d.count()));
  return d.count();
}

}  // namespace

rt::scheduler_options effective_options(const options& o) {
  rt::scheduler_options out;
  if (o.procs > rt::max_procs) {
    throw std::invalid_argument(fmt::format("weft::options::procs: {} is more than {}", o.procs, rt::max_procs));
  }
  if (o.max_threads == 0) throw std::invalid_argument("weft::options::max_threads: 0");
  out.procs = o.procs != 0 ? o.procs : procs_of_environment();
  out.follow_cpus = out.procs == 0;
  if (out.follow_cpus) out.procs = std::min(rt::count_cpus(0), rt::max_procs);
  out.stack_size = o.stack_size != 0 ? o.stack_size : options{}.stack_size;
  out.max_threads = o.max_threads;
  out.measure_stacks = o.measure_stacks;
  out.force_tick_period = std::max<rt::nanos>(not_negative(o.force_tick_period, "force_tick_period"), rt::millisecond);
  out.shutdown_grace = not_negative(o.shutdown_grace, "shutdown_grace");
  out.deadlock_check = o.deadlock_check;
  apply_debug(out);
  return out;
}

}  // namespace weft
