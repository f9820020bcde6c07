// Values through channels: a pair that takes turns, and producers and consumers with a buffer between them.
#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/sync.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

// One operation: a value there and a value back.
void roundtrip(bench::job& j, std::size_t count, bool on_threads) {
  weft::chan<int> ping, pong;
  weft::go([=] {
    if (on_threads) weft::lock_os_thread();
    for (int v : ping) pong.send(v);
  });
  if (on_threads) weft::lock_os_thread();
  j.measure(j.count(count), [=](std::size_t n) {
    int v = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ping.send(v);
      pong.recv(v);
    }
  });
  ping.close();
}

// One operation: a value from one of `pairs` producers to one of as many consumers.
void through_buffer(bench::job& j, std::size_t pairs) {
  j.measure(j.count(2'000'000, pairs), [pairs](std::size_t n) {
    const std::size_t each = n / pairs;
    weft::chan<int> c(128);
    weft::wait_group producers, consumers;
    for (std::size_t p = 0; p < pairs; ++p) {
      producers.go([=] {
        for (std::size_t i = 0; i < each; ++i) c.send(1);
      });
      consumers.go([=] {
        int v = 0;
        while (c.recv(v)) bench::keep(v);
      });
    }
    producers.wait();
    c.close();
    consumers.wait();
  });
}

const bench::workloads here{
    {"buffered_1_1", [](bench::job& j) { through_buffer(j, 1); }},
    {"buffered_8_8", [](bench::job& j) { through_buffer(j, 8); }},
    {"roundtrip", [](bench::job& j) { roundtrip(j, 1'000'000, false); }},
    {"roundtrip_threads", [](bench::job& j) { roundtrip(j, 40'000, true); }},  // each side tied to its own thread
};

}  // namespace
