// What C++ adds to goroutines: exceptions, errno and variables of its own (weft::local) belong to the goroutine,
// whatever thread it continues on.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <unwind.h>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;

namespace {

// Suspends this goroutine, so that it may continue on another thread, if there is one.
void wander(int i) {
  switch (i % 4) {
    case 0: weft::yield(); break;
    case 1: weft::sleep(20us); break;
    case 2: weft::blocking([] { ::usleep(20); }); break;
    default: weft::spawn([] { weft::yield(); }).join();
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

}  // namespace

TEST_CASE("exceptions: a goroutine may wait in a catch block, and rethrow afterwards") {
  std::atomic<int> wrong{0};
  on_many(16, [&](int g) {
    for (int i = 0; i < fewer(40); ++i) {
      std::string mine = std::to_string(g) + "." + std::to_string(i);
      try {
        try {
          throw std::runtime_error(mine);
        } catch (const std::runtime_error& e) {
          wander(g + i);
          if (e.what() != mine) ++wrong;
          try {
            throw std::out_of_range("inner " + mine);
          } catch (const std::exception& inner) {
            wander(g + i + 1);
            if (inner.what() != "inner " + mine) ++wrong;
          }
          wander(i);
          throw;
        }
      } catch (const std::runtime_error& e) {
        if (e.what() != mine) ++wrong;
      }
      if (std::current_exception()) ++wrong;
      if (std::uncaught_exceptions() != 0) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("exceptions: current_exception is the goroutine's own") {
  std::atomic<int> wrong{0};
  on_many(16, [&](int g) {
    for (int i = 0; i < fewer(40); ++i) {
      std::exception_ptr kept;
      try {
        throw g * 1000 + i;
      } catch (...) {
        wander(g * i);
        kept = std::current_exception();
      }
      wander(g);
      try {
        std::rethrow_exception(kept);
      } catch (int v) {
        if (v != g * 1000 + i) ++wrong;
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("exceptions: a goroutine may wait in a destructor while one unwinds") {
  std::atomic<int> wrong{0};
  on_many(16, [&](int g) {
    struct waits {
      std::atomic<int>& wrong;
      int i;
      ~waits() {
        if (std::uncaught_exceptions() != 1) ++wrong;
        wander(i);
        if (std::uncaught_exceptions() != 1) ++wrong;
        try {
          throw i;
        } catch (int v) {
          wander(i + 1);
          if (v != i) ++wrong;
          if (std::uncaught_exceptions() != 1) ++wrong;
        }
      }
    };
    for (int i = 0; i < fewer(40); ++i) {
      try {
        waits a{wrong, g + i};
        waits b{wrong, g + i + 1};
        throw std::to_string(i);
      } catch (const std::string& s) {
        if (s != std::to_string(i)) ++wrong;
      }
      if (std::uncaught_exceptions() != 0) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("exceptions: handlers in handlers, each left on another thread than it was entered on") {
  std::atomic<int> wrong{0};
  on_many(12, [&](int g) {
    for (int i = 0; i < fewer(20); ++i) {
      try {
        throw g;
      } catch (int first) {
        std::exception_ptr outer = std::current_exception();
        wander(i);
        try {
          throw std::to_string(g);
        } catch (const std::string& second) {
          wander(g);
          try {
            wander(g + i);
            throw 0.5 * g;
          } catch (double third) {
            wander(i + 1);
            wrong += third != 0.5 * g || second != std::to_string(g) || first != g;
            try {
              throw;  // the innermost
            } catch (double again) {
              wander(i);
              wrong += again != 0.5 * g;
            }
          }
          wander(i);
          wrong += second != std::to_string(g);
        }
        wander(g);
        wrong += std::current_exception() != outer;
        wrong += std::uncaught_exceptions() != 0;
      }
      wrong += std::current_exception() != nullptr;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("exceptions: unwinding within unwinding, with waits in between") {
  std::atomic<int> wrong{0};
  on_many(12, [&](int g) {
    struct inner {
      std::atomic<int>& wrong;
      int i;
      ~inner() {
        wrong += std::uncaught_exceptions() != 2;
        wander(i);
        wrong += std::uncaught_exceptions() != 2;
      }
    };
    struct outer {
      std::atomic<int>& wrong;
      int i;
      ~outer() {
        wander(i);
        try {
          inner a{wrong, i};
          inner b{wrong, i + 1};
          throw i;
        } catch (int v) {
          wander(i + 1);
          wrong += v != i || std::uncaught_exceptions() != 1;
        }
        wander(i + 2);
        wrong += std::uncaught_exceptions() != 1;
      }
    };
    for (int i = 0; i < fewer(20); ++i) {
      try {
        outer o{wrong, g + i};
        throw std::runtime_error(std::to_string(g));
      } catch (const std::runtime_error& e) {
        wrong += e.what() != std::to_string(g);
      }
      wrong += std::uncaught_exceptions() != 0;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("exceptions: exit_goroutine runs destructors that wait, and passes handlers that wait and rethrow") {
  std::atomic<int> wrong{0}, destroyed{0}, passed{0};
  on_many(12, [&](int g) {
    struct waits {
      std::atomic<int>&wrong, &destroyed;
      int i;
      ~waits() {
        wander(i);
        wrong += std::uncaught_exceptions() != 1;
        ++destroyed;
      }
    };
    weft::spawn([&, g] {
      waits a{wrong, destroyed, g};
      try {
        waits b{wrong, destroyed, g + 1};
        wander(g);
        weft::exit_goroutine();
      } catch (const std::exception&) {
        ++wrong;  // what exit_goroutine throws is not a std::exception
      } catch (...) {
        wander(g + 2);
        wrong += std::uncaught_exceptions() != 0;
        ++passed;
        throw;
      }
      ++wrong;
    }).wait();
    // The unwinding has left nothing behind for the next goroutine on this stack.
    wrong += weft::spawn([] { return std::uncaught_exceptions() + (std::current_exception() != nullptr); }).join();
  });
  CHECK(wrong == 0);
  CHECK(passed == 12);
  CHECK(destroyed == 24);
}

TEST_CASE("exceptions: from one goroutine to another") {
  weft::run([] {
    chan<std::exception_ptr> c;
    for (int i = 0; i < 50; ++i) {
      weft::go([=] {
        std::exception_ptr p;
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (...) {
          p = std::current_exception();
        }
        // Not sent from within the handler, which would keep a reference: the thread that drops the last reference
        // synchronizes inside libstdc++, where ThreadSanitizer does not see it.
        c.send(std::move(p));
      });
    }
    std::set<std::string> seen;
    for (int i = 0; i < 50; ++i) {
      try {
        std::rethrow_exception(*c.recv());
      } catch (const std::runtime_error& e) {
        seen.insert(e.what());
      }
    }
    CHECK(seen.size() == 50);
  });
}

TEST_CASE("exceptions: a nested one keeps its story across goroutines") {
  weft::run([] {
    auto t = weft::spawn([] {
      try {
        weft::spawn([] { throw std::runtime_error("inside"); }).join();
      } catch (...) {
        std::throw_with_nested(std::logic_error("outside"));
      }
    });
    try {
      t.join();
      FAIL("nothing was thrown");
    } catch (const std::logic_error& e) {
      CHECK(std::string(e.what()) == "outside");
      CHECK_THROWS_WITH(std::rethrow_if_nested(e), "inside");
    }
  });
}

// The tests do not use `errno` itself twice in one function: compilers take its address once, and after a suspension
// that is the errno of the thread on which the function began.
namespace {
__attribute__((noinline)) void set_errno(int e) { errno = e; }
__attribute__((noinline)) int get_errno() {
  asm volatile("");
  return errno;
}
}  // namespace

TEST_CASE("errno belongs to the goroutine") {
  std::atomic<int> wrong{0};
  on_many(16, [&](int g) {
    for (int i = 0; i < fewer(60); ++i) {
      set_errno(100 + g);
      wander(g + i);
      if (get_errno() != 100 + g) ++wrong;
    }
  });
  CHECK(wrong == 0);
  weft::run([] {
    set_errno(77);
    CHECK(weft::spawn([] { return get_errno(); }).join() == 0);
    CHECK(get_errno() == 77);
    weft::blocking([] { ::close(-1); });
    CHECK(get_errno() == EBADF);
  });
}

namespace {
struct tracked {
  static inline std::atomic<int> alive{0};
  int value = 0;
  tracked() { ++alive; }
  ~tracked() { --alive; }
};
weft::local<tracked> a_local;
weft::local<std::string> a_string;
weft::local<std::unique_ptr<int>> a_pointer;
}  // namespace

TEST_CASE("local: each goroutine has its own, also after it moved to another thread") {
  std::atomic<int> wrong{0};
  on_many(16, [&](int g) {
    if (a_local->value != 0 || !a_string->empty()) ++wrong;
    a_local->value = g;
    *a_string = std::to_string(g);
    for (int i = 0; i < fewer(40); ++i) {
      wander(g + i);
      if (a_local->value != g || a_string.get() != std::to_string(g)) ++wrong;
    }
  });
  CHECK(wrong == 0);
  CHECK(tracked::alive == 0);
}

TEST_CASE(
    "local: destroyed with the goroutine, after its closure, before it counts as done, and not handed to the next one "
    "on that stack") {
  weft::run([] {
    struct uses_local_at_the_end {
      bool armed = true;
      uses_local_at_the_end() = default;
      uses_local_at_the_end(uses_local_at_the_end&& o) noexcept : armed(std::exchange(o.armed, false)) {}
      ~uses_local_at_the_end() {
        if (armed && a_local->value != 5) std::abort();
      }
      void operator()() const { a_local->value = 5; }
    };
    weft::spawn(uses_local_at_the_end{}).join();
    CHECK(tracked::alive == 0);
    for (int i = 0; i < 10; ++i) CHECK(weft::spawn([] { return a_local->value; }).join() == 0);
    weft::spawn([] {
      a_local->value = 1;
      weft::exit_goroutine();
    }).wait();
    CHECK(tracked::alive == 0);
    CHECK_THROWS_AS(weft::spawn([] {
                      a_local->value = 2;
                      throw 1;
                    }).join(),
                    int);
    CHECK(tracked::alive == 0);
    weft::wait_group wg;
    for (int i = 0; i < 100; ++i) wg.go([] { a_local->value = 3; });
    wg.wait();
    CHECK(tracked::alive == 0);
    weft::task_group group;
    for (int i = 0; i < 100; ++i) group.go([] { a_local->value = 4; });
    group.wait();
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("local: one that is made while others are destroyed is destroyed, too") {
  weft::run([] {
    static std::atomic<int> destroyed{0};
    struct last {
      ~last() { ++destroyed; }
    };
    static weft::local<last> made_late;
    struct makes_another {
      ~makes_another() {
        (void)*made_late;
        ++destroyed;
      }
    };
    static weft::local<makes_another> first;
    weft::spawn([] { (void)*first; }).join();
    CHECK(destroyed == 2);
  });
}

TEST_CASE("local: on a thread that is no goroutine it is an error") { CHECK_THROWS_AS(*a_pointer, std::logic_error); }

TEST_CASE("the unwinder of the program is not libunwind's") {
  Dl_info info{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&_Unwind_RaiseException), &info) != 0);
  CHECK(std::string(info.dli_fname).find("libunwind.so.8") == std::string::npos);
}

#if defined(__x86_64__)
TEST_CASE("a goroutine begins with its spawner's floating-point environment, whoever runs before it") {
  weft::run(
      [] {
        const int usual = std::fegetround();
        chan<int> rounding{4};
        // Several times, as the first goroutines of a program do not begin on the stack of one that has ended.
        for (int i = 0; i < 20; ++i) {
          const bool parks = i % 2 != 0;
          chan<void> gate;
          weft::go([=] { rounding.send(std::fegetround()); });
          weft::go([=] {
            std::fesetround(FE_UPWARD);
            if (parks) gate.recv();
          });
          CHECK(rounding.recv() == usual);  // the second one ran first, as runnext
          gate.close();
        }
        std::fesetround(FE_DOWNWARD);
        weft::go([=] { rounding.send(std::fegetround()); });
        std::fesetround(usual);
        CHECK(rounding.recv() == FE_DOWNWARD);
      },
      {.procs = 1});
}
#endif

TEST_CASE("errno survives a switch to a goroutine that needs a new stack") {
  weft::run(
      [] {
        for (int i = 0; i < 300; ++i) {
          weft::go({.stack_size = 16384 + 4096 * static_cast<std::size_t>(i % 50)}, [] { weft::sleep(1ms); });
          weft::go([] { weft::sleep(1ms); });
          set_errno(1000 + i);
          weft::yield();
          CHECK(get_errno() == 1000 + i);
        }
      },
      {.procs = 1});
}
