// The prime sieve: a chain of goroutines, each of which passes on what its own prime does not divide.
#include <weft/chan.hpp>
#include <weft/go.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

void generate(weft::chan<int> out) {
  for (int i = 2;; ++i) out.send(i);
}

void filter(weft::chan<int> in, weft::chan<int> out, int prime) {
  for (;;) {
    int v = *in.recv();
    if (v % prime != 0) out.send(v);
  }
}

// Returns how many values go through the channels, all together, until the last of that many primes is known.
std::size_t hops(std::size_t primes) {
  std::vector<int> known;
  std::size_t n = 0;
  for (int i = 2; known.size() < primes; ++i) {
    ++n;
    bool prime = true;
    for (int p : known) {
      if (i % p == 0) {
        prime = false;
        break;
      }
      ++n;
    }
    if (prime) known.push_back(i);
  }
  return n;
}

// One operation: a value through one channel. At every scale it is 1000 primes: with fewer, most of the time goes into
// starting the goroutines.
void sieve(bench::job& j) {
  constexpr std::size_t primes = 1000;
  j.measure_once(hops(primes), [] {
    weft::chan<int> c;
    weft::go(generate, c);
    for (std::size_t i = 0;; ++i) {
      int prime = *c.recv();
      if (i + 1 == primes) break;
      weft::chan<int> next;
      weft::go(filter, c, next, prime);
      c = next;
    }
  });
}

const bench::workloads here{
    {"sieve", sieve},
};

}  // namespace
