// Counts the allocations of a wait: none for a sleep, for a deadline or for setting a timer anew, one block for a
// timer, at most one for a function that is called later. Also checks which memory is used again.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <span>
#include <system_error>

namespace {

std::atomic<int> allocations{0};

void* allocate(std::size_t size, std::size_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = nullptr;
  if (posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size) != 0) throw std::bad_alloc();
  return p;
}

template <class F>
int allocations_of(F f) {
  for (int i = 0; i < 8; ++i) f();  // allocates what is kept: the heap's array, a stack, a goroutine's header
  int least = std::numeric_limits<int>::max();
  for (int i = 0; i < 5; ++i) {  // the least of five counts: the scheduler may start a thread meanwhile
    int before = allocations.load();
    f();
    least = std::min(least, allocations.load() - before);
  }
  return least;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t align) { return allocate(size, static_cast<std::size_t>(align)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace std::chrono_literals;

TEST_CASE("waiting allocates nothing, a channel's timer once, an after_func at most once") {
  weft::run([] {
    CHECK(allocations_of([] { weft::sleep(1ms); }) == 0);
    CHECK(allocations_of([] { weft::sleep_until(std::chrono::steady_clock::now() + 1ms); }) == 0);
    CHECK(allocations_of([] { weft::timer t(1h); }) == 1);
    CHECK(allocations_of([] { weft::after(1ms).recv(); }) == 1);
    // after_func uses memory of a kind that is kept for reuse (sched/blocks.hpp), unless the closure is large.
    CHECK(allocations_of([] { weft::after_func(1h, [] {}).stop(); }) == 0);
    CHECK(allocations_of([] {
            std::atomic<bool> called{false};
            weft::after_func(0s, [&] { called = true; });
            while (!called) weft::yield();
          }) == 0);
    CHECK(allocations_of([words = std::array<void*, 8>{}] {
            weft::after_func(1h, [words] { static_cast<void>(words); }).stop();
          }) == 0);
    CHECK(allocations_of([words = std::array<void*, 20>{}] {
            weft::after_func(1h, [words] { static_cast<void>(words); }).stop();
          }) == 1);
    struct alignas(64) wide {
      char bytes[64] = {};
      void operator()() const {}
    };
    CHECK(allocations_of([] { weft::after_func(1h, wide()).stop(); }) == 1);
    CHECK(allocations_of([] {
            weft::ticker t(1h);
            t.reset(2h);
            t.stop();
          }) == 1);
  });
}

TEST_CASE("tasks and waits with a limit use the memory of earlier ones") {
  weft::run([] {
    CHECK(allocations_of([c = weft::chan<int>()] {
            int v;
            (void)c.recv_for(v, 50us);
          }) == 0);
    CHECK(allocations_of([] { weft::spawn([] {}).join(); }) == 0);
    CHECK(allocations_of([] {
            std::array<weft::task<int>, 100> tasks;
            for (auto& t : tasks) t = weft::spawn([] { return 1; });
            for (auto& t : tasks) CHECK(t.join() == 1);
          }) == 0);
    // A task whose result is too large for memory that is kept.
    CHECK(allocations_of([] { weft::spawn([] { return std::array<char, 200>(); }).join(); }) == 1);
  });
}

TEST_CASE("a tick, and another setting of what there is, allocate nothing") {
  weft::run([] {
    weft::ticker k(50us);
    CHECK(allocations_of([&] { k.channel().recv(); }) == 0);
    weft::timer t(1h);
    CHECK(allocations_of([&] {
            t.reset(1us);
            t.channel().recv();
          }) == 0);
    auto f = weft::after_func(1h, [] {});
    CHECK(allocations_of([&] { f.reset(2h); }) == 0);
    CHECK(allocations_of([&] { f.reset(30min); }) == 0);
    CHECK(allocations_of([&] {
            f.stop();
            f.reset(1h);
          }) == 0);
    f.stop();
  });
}

TEST_CASE("the deadline of a socket allocates nothing") {
  weft::run([] {
    using std::chrono::steady_clock;
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto stream = weft::net::tcp_stream::connect(listener.local_endpoint());
    CHECK(allocations_of([&] { stream.set_read_deadline(steady_clock::now() + 1h); }) == 0);
    CHECK(allocations_of([&] { stream.set_deadline(steady_clock::now() + 2h); }) == 0);
    CHECK(allocations_of([&] {
            stream.set_deadline(weft::time_point::max());
            stream.set_deadline(steady_clock::now() + 1h);
          }) == 0);
    CHECK(allocations_of([&] {
            stream.set_read_deadline(steady_clock::now() + 200us);
            std::byte b;
            std::error_code ec;
            (void)stream.read_some(std::span(&b, 1), ec);
          }) == 0);
  });
}
