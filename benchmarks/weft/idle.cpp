// An idle process: what it costs, and how soon it wakes when a message comes.
#include <weft/chan.hpp>
#include <weft/sync.hpp>
#include <weft/time.hpp>

#include <algorithm>
#include <span>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/support/ticks.hpp"
#include "benchmarks/weft/connections.hpp"

namespace {

using namespace std::chrono_literals;

// One operation: an idle second, with 1000 goroutines parked and a server that nobody connects to.
void idle(bench::job& j) {
  const std::size_t seconds = std::max<std::size_t>(1, j.count(4));
  bench::start_echo_server();
  weft::chan<void> gate;
  weft::wait_group wg;
  for (int i = 0; i < 1000; ++i) wg.go([&] { gate.recv(); });
  weft::sleep(50ms);  // until what the start left to do is done
  j.measure_once(seconds, [&] { weft::sleep(std::chrono::seconds(seconds)); });
  gate.close();
  wg.wait();
}

// Measures the time from the write of another process until the goroutine that waits for it runs.
void wake_idle(bench::job& j) {
  const int n = static_cast<int>(j.count(1000, 1000));
  auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  bench::ticking other(listener.local_endpoint().port(), n);
  auto stream = listener.accept();
  bench::samples late;
  for (int i = 0; i < n; ++i) {
    std::int64_t sent = 0;
    stream.read_exactly(std::as_writable_bytes(std::span(&sent, 1)));
    late.add(bench::now_ns() - sent);
  }
  j.report(late);
}

const bench::workloads here{
    {"idle", idle},
    {"wake_idle", wake_idle},
};

}  // namespace
