// Waiting for one of several channels.
#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

using namespace std::chrono_literals;

// Four producers, each with an unbuffered channel of its own; one operation: a value received.
void select_4(bench::job& j) {
  weft::chan<int> a, b, c, d;
  for (auto& out : {a, b, c, d}) {
    weft::go([out] {
      for (;;) out.send(1);
    });
  }
  j.measure(j.count(1'000'000), [&](std::size_t n) {
    int sum = 0;
    auto take = [&](int v) { sum += v; };
    for (std::size_t i = 0; i < n; ++i) {
      weft::select(weft::on_recv(a, take), weft::on_recv(b, take), weft::on_recv(c, take), weft::on_recv(d, take));
    }
    bench::keep(sum);
  });
}

// Nobody ever sends.
void select_default(bench::job& j) {
  weft::chan<int> c;
  j.measure(j.count(20'000'000), [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) weft::select(weft::on_recv(c), weft::on_default());
  });
}

// A value always comes long before the limit.
void select_timeout(bench::job& j) {
  weft::chan<int> c;
  weft::go([c] {
    for (;;) c.send(1);
  });
  j.measure(j.count(500'000), [&](std::size_t n) {
    int sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      weft::select(weft::on_recv(c, [&](int v) { sum += v; }), weft::on_timeout(1s, [] { std::terminate(); }));
    }
    bench::keep(sum);
  });
}

const bench::workloads here{
    {"select_4", select_4},
    {"select_default", select_default},
    {"select_timeout", select_timeout},
};

}  // namespace
