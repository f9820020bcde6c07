#include "site.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "url.hpp"

namespace demo::http {

namespace {

constexpr std::string_view text = "text/plain; charset=utf-8";
constexpr std::string_view json = "application/json";

std::string hello_json() { return nlohmann::json{{"message", "Hello, World!"}}.dump(); }

std::string stats_json() {
  const weft::stats s = weft::runtime_stats();
  const nlohmann::ordered_json j{
      {"goroutines", s.goroutines},
      {"runnable", s.runnable},
      {"running", s.running},
      {"waiting", s.waiting},
      {"threads", s.threads},
      {"idle_threads", s.idle_threads},
      {"spinning_threads", s.spinning_threads},
      {"procs", s.procs},
      {"idle_procs", s.idle_procs},
      {"global_queue", s.global_queue},
      {"spawned", s.spawned},
      {"dispatches", s.dispatches},
      {"yields", s.yields},
      {"parks", s.parks},
      {"steals", s.steals},
      {"polls", s.polls},
      {"preemptions", s.preemptions},
      {"retakes", s.retakes},
      {"timers", s.timers},
      {"stacks", s.stacks},
      {"in_calls", s.in_calls},
      {"detached", s.detached},
      {"hogs", s.hogs},
      {"wakeups", s.wakeups},
      {"preemptions_taken", s.preemptions_taken},
      {"latency", s.latency},
      {"newcomers", s.newcomers},
      {"local_queues", s.local_queues},
      {"longest_queue", s.longest_queue},
      {"locked_threads", s.locked_threads},
      {"thread_wakeups", s.thread_wakeups},
      {"spins", s.spins},
      {"detachments", s.detachments},
      {"parks_by_reason", s.parks_by_reason},
  };
  return j.dump(2) + '\n';
}

}  // namespace

void site::answer(const request& r, response_writer& out, const stop_stages& stop) const {
  if (r.verb == method::other) return out.send_error(405, "this server answers only GET and HEAD");
  if (r.path == "/") return out.send(200, text, "Hello, World!\n");
  if (r.path == "/json") return out.send(200, json, hello_json());
  if (r.path == "/sleep") return sleep(r, out, stop);
  if (r.path == "/stats") return out.send(200, json, stats_json());
  if (root_) return send_file(r, out);
  out.send_error(404, "");
}

// Answers after the time that was asked for. Only the goroutine of this connection waits.
void site::sleep(const request& r, response_writer& out, const stop_stages& stop) const {
  constexpr unsigned longest = 60'000;
  const std::string_view given = query_value(r.query, "ms").value_or("");
  unsigned ms = 0;
  const auto [end, ec] = std::from_chars(given.data(), given.data() + given.size(), ms);
  if (given.empty() || ec != std::errc() || end != given.data() + given.size() || ms > longest) {
    return out.send_error(400, "/sleep?ms=N with N from 0 to 60000");
  }

  out.flush();  // earlier answers must not wait with this one
  bool cut_short = false;
  weft::select(weft::on_timeout(std::chrono::milliseconds(ms)),
               weft::on_recv(stop.over.done(), [&] { cut_short = true; }));
  if (cut_short) return out.send_error(503, "the server is shutting down");
  out.send(200, text, "slept " + std::to_string(ms) + " ms\n");
}

void site::send_file(const request& r, response_writer& out) const {
  std::error_code ec;
  std::optional<found_file> f = weft::blocking([&] { return root_->open(r.path, ec); });
  if (ec) return out.send_error(503, "the file cannot be opened now");
  if (!f) return out.send_error(404, "");

  out.head(200, f->type, f->size);
  if (!out.wants_body()) return;

  std::array<char, 32 * 1024> piece;
  for (std::uint64_t left = f->size; left > 0;) {
    const std::span<char> room(piece.data(), static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size())));
    const std::size_t n = weft::blocking([&] { return f->content.read(room); });
    // The file has shrunk. Its length is promised already, so an early end of the connection has to tell the client.
    if (n == 0) throw std::system_error(std::make_error_code(std::errc::io_error), r.path);
    out.body({piece.data(), n});
    left -= n;
  }
}

}  // namespace demo::http
