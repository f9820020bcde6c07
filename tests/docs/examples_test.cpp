// The examples of README.md and docs/, compiled and run. The documents show what stands between the markers
//
//     // [name]
//     // [/name]
//
// and tests/docs/check.py checks that they show exactly that. What an example needs but should not show is outside the
// markers.

// first_program.cpp is a whole program; its main() becomes a function here.
#define main first_program
#include "tests/docs/first_program.cpp"
#undef main

#include "tests/support/catch.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

std::string fetch(int page) {
  weft::sleep(1ms);
  return "page " + std::to_string(page);
}

int slow_library_call(int x) {
  std::this_thread::sleep_for(2ms);
  return x + 1;
}

}  // namespace

TEST_CASE("docs: the first program") { CHECK(first_program() == 0); }

TEST_CASE("docs: tasks and groups") {
  weft::run([] {
    // [task]
    weft::task<std::string> page = weft::spawn(fetch, 7);
    // ... something else meanwhile ...
    std::string text = page.join();  // waits; rethrows what fetch threw
    // [/task]
    CHECK(text == "page 7");

    std::vector<int> wanted{1, 2, 3, 4};
    std::atomic<int> arrived{0};
    // [group]
    weft::task_group group;
    group.set_limit(2);  // at most two at once
    for (int n : wanted) {
      group.go([&arrived, n] {
        fetch(n);
        ++arrived;
      });
    }
    group.wait();  // throws the first exception, after all have ended
    // [/group]
    CHECK(arrived == 4);
  });
}

TEST_CASE("docs: a goroutine's own variables") {
  // [local]
  static weft::local<int> calls;  // what thread_local cannot be here
  auto count = [] { return ++*calls; };
  // [/local]
  weft::run([&] {
    CHECK(count() == 1);
    CHECK(count() == 2);
    weft::spawn([&] { CHECK(count() == 1); }).join();
  });
}

TEST_CASE("docs: locks that are held across a wait") {
  weft::run([] {
    int balance = 0;
    // [mutex]
    weft::mutex m;  // not std::mutex: this one may be held while the goroutine waits
    weft::wait_group all;
    for (int i = 0; i < 4; ++i) {
      all.go([&] {
        std::scoped_lock hold(m);
        int before = balance;
        weft::sleep(1ms);
        balance = before + 1;
      });
    }
    all.wait();
    // [/mutex]
    CHECK(balance == 4);
  });
}

TEST_CASE("docs: blocking calls") {
  weft::run([] {
    // [blocking]
    int answer = weft::blocking([] { return slow_library_call(41); });
    // [/blocking]
    CHECK(answer == 42);
  });
}

namespace {
thread_local int calls_of_this_thread = 0;
int slow_update(int v) { return v + 1; }
}  // namespace

TEST_CASE("docs: pin") {
  weft::run([] {
    // [pin]
    weft::pin here;  // until the end of the block this goroutine runs on this thread only
    ++calls_of_this_thread;
    weft::sleep(1ms);  // others may run here meanwhile
    ++calls_of_this_thread;
    // [/pin]
    CHECK(calls_of_this_thread == 2);
  });
}

TEST_CASE("docs: no_preemption") {
  weft::run([] {
    int table[] = {1, 2, 3};
    // [no_preemption]
    weft::no_preemption alone;  // with one P: nobody else runs until the end of the block, however long it takes
    for (int& v : table) v = slow_update(v);
    // [/no_preemption]
    CHECK(table[2] == 4);
  });
}

TEST_CASE("docs: errno") {
  weft::run([] {
    // [errno]
    auto try_something = [] {
      errno = EAGAIN;  // stands for a system call that failed
      return -1;
    };
    int n = try_something();
    int error = n < 0 ? errno : 0;  // read it before anything that may wait
    weft::sleep(1ms);
    // [/errno]
    CHECK(error == EAGAIN);
  });
}

TEST_CASE("docs: timers") {
  weft::run([] {
    // [timer]
    weft::timer limit{1h};
    bool was_pending = limit.reset(1ms);  // true: the first setting's value was not received, and never will be
    std::optional<weft::time_point> due = limit.channel().recv();
    // [/timer]
    CHECK(was_pending);
    CHECK(due.has_value());

    // [timed]
    weft::chan<int> c;
    int v = 0;
    weft::recv_result r = c.recv_for(v, 1ms);  // recv_result::empty: the time passed
    // [/timed]
    CHECK(r == weft::recv_result::empty);
  });
}

TEST_CASE("docs: deadlines of a socket") {
  weft::run([] {
    auto [near, far] = weft::net::unix_stream::pair();
    std::array<char, 16> buffer;
    // [deadline]
    near.set_read_deadline(std::chrono::steady_clock::now() + 5ms);
    std::error_code ec;
    near.read(buffer, ec);  // nobody writes
    bool late = ec == std::errc::timed_out;
    near.set_read_deadline(weft::time_point::max());  // none any more
    // [/deadline]
    CHECK(late);
    far.write("now");
    CHECK(near.read(buffer) == 3);
  });
}

TEST_CASE("docs: cancellation") {
  weft::run([] {
    weft::chan<int> work;
    // [context]
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 2ms);
    bool gave_up = false;
    weft::select(weft::on_recv(work, [](int) { /* do it */ }), weft::on_recv(ctx.done(), [&] { gave_up = true; }));
    // [/context]
    CHECK(gave_up);
    CHECK(ctx.err() == std::errc::timed_out);
  });
}

TEST_CASE("docs: a read that ends with a context") {
  weft::run([] {
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 2ms);
    auto [stream, silent] = weft::net::unix_stream::pair();
    std::array<std::byte, 16> buffer;
    // [end_of_read]
    std::stop_callback hurry(ctx.stop_token(), [&] {
      std::error_code ignored;  // the stream may be closed by then, and a stop callback must not throw
      stream.set_read_deadline(weft::time_point::min(), ignored);
    });
    std::error_code ec;
    std::size_t n = stream.read(buffer, ec);  // timed_out, when the context has ended
    // [/end_of_read]
    CHECK(n == 0);
    CHECK(ec == std::errc::timed_out);
  });
}

TEST_CASE("docs: threads that weft did not start") {
  weft::run([] {
    // [foreign]
    weft::chan<std::string> lines{16};
    std::thread reader([lines] {
      lines.send("from a thread");  // blocks the thread if the buffer is full
      lines.close();
    });
    std::size_t n = 0;
    for (const std::string& line : lines) n += line.size();  // parks the goroutine
    weft::blocking([&] { reader.join(); });
    // [/foreign]
    CHECK(n == 13);
  });
}

TEST_CASE("docs: a computation that never calls weft") {
  weft::run(
      [] {
        std::atomic<bool> stop{false};
        // [hog]
        weft::task<long> hog = weft::spawn([&stop] {
          long n = 0;
          while (!stop.load(std::memory_order_relaxed)) ++n;  // never calls weft
          return n;
        });
        weft::sleep(1ms);  // comes back all the same: sysmon takes the hog's P, not its CPU
        stop = true;
        hog.join();
        // [/hog]
      },
      {.procs = 1});
}

TEST_CASE("docs: looking inside") {
  weft::run([] {
    weft::chan<int> never;
    weft::go({.name = "forgotten"}, [never] { never.recv(); });
    weft::yield();
    // [stats]
    weft::stats s = weft::runtime_stats();
    std::printf("%zu goroutines, %zu threads\n", std::size_t(s.goroutines), std::size_t(s.threads));
    // [/stats]
    CHECK(s.goroutines == 2);
    never.close();
    while (weft::num_goroutines() > 1) weft::yield();
  });
}
