// The bare switch of stacks by Boost.Context, on which Boost.Fiber is built (weft has a jump of its own on x86-64). A
// yield takes one switch. A spawn with its join, and a value through an unbuffered channel and back, take two.
#include <boost/context/detail/fcontext.hpp>

#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

using namespace boost::context::detail;

void bounce(transfer_t t) {
  for (;;) t = jump_fcontext(t.fctx, nullptr);
}

// Does n times two switches: to the other stack and back.
void switches(std::size_t n) {
  std::vector<char> stack(64 * 1024);
  transfer_t t{make_fcontext(stack.data() + stack.size(), stack.size(), bounce), nullptr};
  for (std::size_t i = 0; i < n; ++i) t = jump_fcontext(t.fctx, nullptr);
}

void yield(bench::job& j) {
  std::size_t n = j.count(20'000'000, 2);
  j.measure_once(n, [=] { switches(n / 2); });
}

void two_each(bench::job& j) {
  std::size_t n = j.count(10'000'000);
  j.measure_once(n, [=] { switches(n); });
}

const bench::workloads here{
    {"roundtrip", two_each},
    {"spawn_join", two_each},
    {"yield", yield},
};

}  // namespace
