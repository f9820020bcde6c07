// What a goroutine finds after each suspension that ends on another thread: its own variables, its errno, and the
// standard library in order. Run with WEFT_DEBUG=hazard=1, which makes it another thread each time; tests/matrix/run
// repeats this in many builds.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <locale>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;

namespace {

constexpr int kinds = 6;

// Suspends the goroutine, in one of several ways.
void suspend(int kind) {
  switch (kind % kinds) {
    case 0: weft::yield(); break;
    case 1: weft::sleep(10us); break;
    case 2: weft::blocking([] {}); break;
    case 3: weft::spawn([] { weft::yield(); }).join(); break;
    case 4: {
      chan<int> c;
      weft::go([=] {
        weft::yield();
        c.send(1);
      });
      c.recv();
      break;
    }
    default: {
      weft::event e;
      weft::go([&] { e.set(); });
      e.wait();
    }
  }
}

template <class F>
void on_many(int goroutines, F f) {
  weft::run([&] {
    weft::wait_group w;
    for (int g = 0; g < goroutines; ++g) w.go([&, g] { f(g); });
    w.wait();
  });
}

weft::local<std::string> a_local;

}  // namespace

TEST_CASE("migration: suspensions end on another thread") {
  weft::run([] {
    int stayed = 0;
    for (int i = 0; i < 30; ++i) {
      pid_t before = ::gettid();
      suspend(i % 3);
      stayed += ::gettid() == before;
    }
    CHECK(stayed == 0);
  });
}

TEST_CASE("migration: a goroutine's own things move along") {
  std::atomic<int> wrong{0};
  on_many(8, [&](int g) {
    std::uint64_t id = weft::this_goroutine::id();
    std::string name = "number " + std::to_string(g);
    weft::this_goroutine::set_name(name);
    *a_local = name;
    weft::mutex m;
    for (int i = 0; i < fewer(30); ++i) {
      std::lock_guard hold(m);
      suspend(g + i);
      wrong += weft::this_goroutine::id() != id;
      wrong += weft::this_goroutine::name() != name;
      wrong += *a_local != name;
    }
  });
  CHECK(wrong == 0);
}

// The whole loop is in one function: there, compilers keep the address of errno.
TEST_CASE("migration: errno") {
  std::atomic<int> wrong{0};
  on_many(8, [&](int g) {
    for (int i = 0; i < fewer(30); ++i) {
      errno = 1000 + g;
      suspend(i);
      if (errno != 1000 + g) ++wrong;
      errno = i;
      weft::yield();
      if (errno != i) ++wrong;
      if (::close(-1) != -1 || errno != EBADF) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("migration: iostreams and printf") {
  std::atomic<int> wrong{0};
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  on_many(8, [&](int g) {
    std::ostringstream kept;
    std::string expected;
    for (int i = 0; i < fewer(20); ++i) {
      kept << std::setw(6) << std::hex << i * g << '\n';
      suspend(g + i);
      std::ostringstream fresh;
      fresh.imbue(std::locale::classic());
      fresh << std::fixed << std::setprecision(3) << g + i / 8.0;
      suspend(i);
      char text[32];
      std::snprintf(text, sizeof text, "%.3f", g + i / 8.0);
      wrong += fresh.str() != text;
      std::istringstream in(fresh.str());
      suspend(g);
      double back = 0;
      in >> back;
      wrong += back < g + i / 8.0 - 0.001 || back > g + i / 8.0 + 0.001;
      char line[32];
      std::snprintf(line, sizeof line, "%6x\n", static_cast<unsigned>(i * g));
      expected += line;
      std::fprintf(file, "%d %d\n", g, i);
      std::cout << "" << std::flush;
      suspend(i + 1);
    }
    wrong += kept.str() != expected;
  });
  CHECK(wrong == 0);
  std::rewind(file);
  int lines = 0;
  for (int g, i; std::fscanf(file, "%d %d", &g, &i) == 2;) ++lines;
  CHECK(lines == 8 * fewer(20));
  std::fclose(file);
}

TEST_CASE("migration: a large number of suspensions of all kinds at once") {
  std::atomic<int> sum{0};
  on_many(fewer(40), [&](int g) {
    for (int i = 0; i < kinds; ++i) {
      suspend(g + i);
      ++sum;
    }
  });
  CHECK(sum == fewer(40) * kinds);
}
