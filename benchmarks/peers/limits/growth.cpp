// The caches' part in the cost of one operation among many goroutines (weft/growth.cpp): bare switches among as many
// stacks of a page each.
#include <boost/context/detail/fcontext.hpp>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

using namespace boost::context::detail;

// Contexts, each on a page of its own. Their functions own nothing, so that they can be dropped at any time.
class contexts {
 public:
  contexts(std::size_t n, void (*f)(transfer_t)) : bytes_(n * page), all_(n) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("no memory");
    madvise(p, bytes_, MADV_NOHUGEPAGE);
    pages_ = static_cast<char*>(p);
    // Tops at the same place in each page would compete for the same few cache sets.
    for (std::size_t i = 0; i < n; ++i) {
      char* top = pages_ + (i + 1) * page - i % 32 * 64;
      all_[i] = make_fcontext(top, page / 2, f);
    }
  }
  contexts(const contexts&) = delete;
  contexts& operator=(const contexts&) = delete;
  ~contexts() { munmap(pages_, bytes_); }

  std::vector<fcontext_t>& all() { return all_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_;
  char* pages_;
  std::vector<fcontext_t> all_;
};

// From one context to the next, n times, and then to main.
struct ring {
  explicit ring(std::size_t size) : stacks(size, turn) {}

  void go_round(std::size_t n) {
    left = n;
    goes_on = &main;
    const transfer_t t = jump_fcontext(*here(), this);
    *goes_on = t.fctx;
  }

  static void turn(transfer_t t) {
    auto& r = *static_cast<ring*>(t.data);
    for (;;) {
      *r.goes_on = t.fctx;
      r.goes_on = r.here();
      r.at = (r.at + 1) % r.stacks.all().size();
      t = jump_fcontext(--r.left == 0 ? r.main : *r.here(), &r);
    }
  }

  fcontext_t* here() { return &stacks.all()[at]; }

  contexts stacks;
  std::size_t at = 0, left = 0;
  fcontext_t main = nullptr;
  fcontext_t* goes_on = nullptr;  // where the context that jumps is to be kept
};

void take_turns(bench::job& j, std::size_t n) {
  ring r(n);
  r.go_round(n);
  const std::size_t switches = j.count(8'000'000, n);
  j.measure_once(switches, [&] { r.go_round(switches); });
}

void bounce(transfer_t t) {
  for (;;) t = jump_fcontext(t.fctx, nullptr);
}

// One operation: to a stack, at random, and back.
void ask(bench::job& j, std::size_t n) {
  contexts stacks(n, bounce);
  auto& all = stacks.all();
  auto visit = [](fcontext_t& c) { c = jump_fcontext(c, nullptr).fctx; };
  for (auto& c : all) visit(c);
  std::shuffle(all.begin(), all.end(), std::minstd_rand(1));
  j.measure(j.count(1'000'000), [&](std::size_t ops) {
    for (std::size_t i = 0; i < ops; ++i) visit(all[i % n]);
  });
}

const bench::workloads here{
    {"yield_1k", [](bench::job& j) { take_turns(j, 1000); }},
    {"yield_10k", [](bench::job& j) { take_turns(j, 10'000); }},
    {"yield_100k", [](bench::job& j) { take_turns(j, 100'000); }},
    {"yield_1m", [](bench::job& j) { take_turns(j, 1'000'000); }},
    {"ask_1k", [](bench::job& j) { ask(j, 1000); }},
    {"ask_10k", [](bench::job& j) { ask(j, 10'000); }},
    {"ask_100k", [](bench::job& j) { ask(j, 100'000); }},
    {"ask_1m", [](bench::job& j) { ask(j, 1'000'000); }},
};

}  // namespace
