// What happens when the system refuses memory or threads. Of the calls of one kind, either only the n-th fails, or the
// n-th and all after it, for n = 1, 2, 3 ... until the action under test makes no n-th call.
//
// Each time: the action works, or throws std::bad_alloc or std::system_error; nothing is left over; what runs besides
// goes on; and without failures the action works again.
//
// Kills these mutants (tests/mutants): after-func-is-forgotten, rwmutex-needs-memory.
//
// Linked with --wrap, so that weft's own system calls come through here. operator new is replaced for the whole
// program.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

enum class call { none, allocate, map, thread, advise };

struct failing {
  std::atomic<call> what{call::none};
  std::atomic<int> left{0};
  std::atomic<bool> for_good{false};
  std::atomic<int> failed{0};

  bool now(call c) noexcept {
    if (what.load() != c) return false;
    int n = left.fetch_sub(1);
    if (n > 1 || (n < 1 && !for_good.load())) return false;
    failed.fetch_add(1);
    return true;
  }
  void from(int n, call c, bool ever_after) noexcept {
    failed = 0;
    left = n;
    for_good = ever_after;
    what = c;
  }
  int stop() noexcept {
    what = call::none;
    return failed;
  }
};
constinit failing fails;

}  // namespace

extern "C" {
void* __real_mmap64(void*, std::size_t, int, int, int, off64_t);
void* __wrap_mmap64(void* at, std::size_t size, int prot, int flags, int fd, off64_t offset) {
  if (fails.now(call::map)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap64(at, size, prot, flags, fd, offset);
}

void* __real_realloc(void*, std::size_t);
void* __wrap_realloc(void* at, std::size_t size) {
  return fails.now(call::allocate) ? nullptr : __real_realloc(at, size);
}

int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __wrap_pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* arg) {
  return fails.now(call::thread) ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

int __real_madvise(void*, std::size_t, int);
int __wrap_madvise(void* at, std::size_t size, int advice) {
  if (fails.now(call::advise)) {
    errno = ENOMEM;
    return -1;
  }
  return __real_madvise(at, size, advice);
}

int __real_mprotect(void*, std::size_t, int);
int __wrap_mprotect(void* at, std::size_t size, int prot) {
  if (fails.now(call::advise)) {
    errno = ENOMEM;
    return -1;
  }
  return __real_mprotect(at, size, prot);
}
}

namespace {

void* allocate(std::size_t size, std::size_t align) {
  void* p = nullptr;
  if (fails.now(call::allocate) || posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size) != 0) {
    throw std::bad_alloc();
  }
  return p;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t align) { return allocate(size, static_cast<std::size_t>(align)); }
// The sanitizers have their own nothrow forms, which do not call the ones above.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, alignof(std::max_align_t));
  } catch (...) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, static_cast<std::size_t>(align));
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace weft::test;

namespace {

constexpr call kinds[] = {call::allocate, call::map, call::thread, call::advise};

const char* name_of(call c) {
  switch (c) {
    case call::none: return "none";
    case call::allocate: return "allocate";
    case call::map: return "map";
    case call::thread: return "thread";
    case call::advise: return "advise";
  }
  return "?";
}

// True: f returned. False: f threw what it may throw. Any other exception propagates.
bool works(const std::function<void()>& f) {
  try {
    f();
    return true;
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {}
  return false;
}

// What runs besides the action: two goroutines that talk, and a ticker.
class company {
 public:
  company() {
    going_.go([this] {
      for (; !over_; ++rounds_) {
        ping_.send(1);
        pong_.recv();
      }
      ping_.close();
    });
    going_.go([this] {
      while (ping_.recv()) pong_.send(1);
    });
    going_.go([this] {
      weft::ticker t(1ms);
      while (!over_) {
        try {
          t.channel().recv();
          ++ticks_;
        } catch (const std::bad_alloc&) {
          // This failure was meant for the action, but hit the ticker: there was no room among the timers.
        }
      }
    });
  }
  ~company() {
    over_ = true;
    going_.wait();
  }
  bool goes_on() {
    long rounds = rounds_, ticks = ticks_;
    return eventually([&] { return rounds_ > rounds + 2 && ticks_ > ticks + 2; });
  }

 private:
  weft::chan<int> ping_, pong_;
  std::atomic<long> rounds_{0}, ticks_{0};
  std::atomic<bool> over_{false};
  weft::wait_group going_;
};

// For each kind of call, how many attempts met a failure.
using refusals = std::map<call, int>;

// Called inside a run(). `f` must leave nothing behind, however it ends. Returns false if no call failed.
bool survives_one(company& others, const std::function<void()>& f, call c, int n, bool for_good) {
  INFO(name_of(c) << " fails at call " << n << (for_good ? " and ever after" : ""));
  std::size_t before = weft::num_goroutines();
  fails.from(n, c, for_good);
  bool worked = works(f);
  bool touched = fails.stop() != 0;
  REQUIRE((worked || touched));
  REQUIRE(eventually([&] { return weft::num_goroutines() <= before; }));
  REQUIRE(others.goes_on());
  REQUIRE(works(f));
  REQUIRE(eventually([&] { return weft::num_goroutines() <= before; }));
  return touched;
}

// Called inside a run(). Lets f's calls of each kind fail, one after the other.
refusals survives(const std::function<void()>& f) {
  refusals refused;
  company others;
  REQUIRE(others.goes_on());
  for (call c : kinds) {
    for (bool for_good : {false, true}) {
      for (int n = 1; survives_one(others, f, c, n, for_good); ++n) ++refused[c];
    }
  }
  return refused;
}

// A thread that was started stays, so each attempt has a run() of its own. Returns how many attempts needed a thread
// that could not be started.
int survives_without_threads(const std::function<void()>& f) {
  int refused = 0;
  for (bool for_good : {false, true}) {
    auto touched = [&](int n) {
      return weft::run(
          [&] {
            company others;
            REQUIRE(others.goes_on());
            return survives_one(others, f, call::thread, n, for_good);
          },
          {.procs = 2});
    };
    for (int n = 1; touched(n); ++n) ++refused;
  }
  return refused;
}

// Goroutines that end with this scope, even if one of them could not be started.
struct group : weft::wait_group {
  weft::chan<void> end;
  ~group() {
    end.close();
    wait();
  }
};

constexpr int many = 300;  // more than a mapping has slots

// Without a signal stack, a goroutine that overflows its stack would die without a message.
bool has_signal_stack() {
  stack_t present{};
  return ::sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE);
}

}  // namespace

TEST_CASE("run() throws when the system refuses, and the next run() works") {
  for (call c : kinds) {
    for (bool for_good : {false, true}) {
      for (int n = 1;; ++n) {
        INFO(name_of(c) << " fails at call " << n << (for_good ? " and ever after" : ""));
        bool began = false;
        fails.from(n, c, for_good);
        bool safe = false;
        bool worked = works([&] {
          weft::run([&] {
            began = true;
            safe = has_signal_stack();
          });
        });
        bool touched = fails.stop() != 0;
        REQUIRE((worked || touched));
        if (worked) REQUIRE((began && safe));
        REQUIRE(weft::run([] { return 7; }) == 7);
        REQUIRE(weft::num_goroutines() == 0);
        if (!touched) break;
      }
    }
  }
}

TEST_CASE("go() throws when the system refuses") {
  weft::run([] {
    refusals refused = survives([] {
      group w;
      for (int i = 0; i < many; ++i) w.go([&w] { w.end.recv(); });
    });
    CHECK(refused[call::allocate] > 0);
    // Stacks of a new size each time, and closures that lie on the stack or on the heap.
    static std::size_t size;
    size = 64 * 1024;
    refused = survives([] {
      group w;
      size += 4096;
      for (int i = 0; i < 3; ++i) w.go({.name = "of its own size", .stack_size = size}, [&w] { w.end.recv(); });
    });
    for (call c : {call::allocate, call::map, call::advise}) CHECK(refused[c] > 0);
    refused = survives([] {
      struct large {
        char bytes[1024] = {};
      };
      struct huge {
        char bytes[8192] = {};
      };
      std::atomic<int> sum{0};
      group w;
      w.go([&sum, l = large()] { sum += 1 + l.bytes[7]; });
      w.go([&sum, h = huge()] { sum += 1 + h.bytes[7]; });
      w.wait();
      if (sum != 2) throw std::logic_error("it did not run");
    });
    CHECK(refused[call::allocate] > 0);
  });
}

TEST_CASE("spawn() and task_group throw when the system refuses") {
  weft::run([] {
    // A result for which no block is kept (sched/blocks.hpp).
    refusals refused = survives([] {
      auto t = weft::spawn([] { return std::array<int, 64>{7}; });
      if (t.join()[0] != 7) throw std::logic_error("another result");
    });
    CHECK(refused[call::allocate] > 0);
    refused = survives([] {
      std::vector<weft::task<int>> tasks;
      for (int i = 0; i < 10; ++i) tasks.push_back(weft::spawn([i] { return i; }));
      for (int i = 0; i < 10; ++i) {
        if (tasks[static_cast<std::size_t>(i)].join() != i) throw std::logic_error("another result");
      }
    });
    CHECK(refused[call::allocate] > 0);
  });
}

TEST_CASE("channels, timers and waits with a limit throw when the system refuses") {
  weft::run([] {
    refusals refused = survives([] {
      weft::chan<int> c(4), empty;
      c.send(1);
      int v = 0;
      if (!c.recv(v) || v != 1) throw std::logic_error("another value");
      if (empty.recv_for(v, 1ms) != weft::recv_result::empty) throw std::logic_error("a value");
    });
    CHECK(refused[call::allocate] > 0);
    refused = survives([] {
      weft::timer t(1ms);
      if (!t.channel().recv()) throw std::logic_error("no tick");
      weft::ticker k(1ms);
      for (int i = 0; i < 2; ++i) k.channel().recv();
    });
    CHECK(refused[call::allocate] > 0);
    refused = survives([] {
      weft::chan<void> called(1);
      auto t = weft::after_func(100us, [&] { called.send(); });
      struct stops {
        weft::func_timer& t;
        ~stops() { t.stop_and_wait(); }
      } at_the_end{t};
      called.recv();
    });
    CHECK(refused[call::allocate] > 0);
    survives([] { weft::sleep(100us); });  // a sleep needs no memory
    refused = survives([] {
      auto [ctx, cancel] = weft::with_timeout(weft::background(), 1ms);
      ctx.done().recv();
    });
    CHECK(refused[call::allocate] > 0);
  });
}

// A writer that waits sets a timer for itself.
TEST_CASE("lock of a shared_mutex needs no memory") {
  weft::run([] {
    weft::shared_mutex m;
    weft::chan<void> begin;
    weft::wait_group writers, locked;
    bool threw = false;
    for (int i = 0; i < many; ++i) {
      writers.go([&] {
        while (begin.recv()) {
          try {
            std::lock_guard hold(m);
          } catch (...) {
            threw = true;
          }
          locked.done();
        }
      });
    }
    refusals refused = survives([&] {
      {
        std::lock_guard hold(m);
        locked.add(many);
        for (int i = 0; i < many; ++i) begin.send();
        weft::sleep(2ms);
      }
      locked.wait();
    });
    begin.close();
    writers.wait();
    CHECK(refused[call::allocate] > 0);
    CHECK_FALSE(threw);
  });
}

TEST_CASE("a socket that cannot be made leaves no path behind") {
  const std::string path = "/tmp/weft-failures-test-" + std::to_string(::getpid());
  weft::run([&] {
    bool left = false;
    refusals refused = survives([&] {
      try {
        auto l = weft::net::unix_listener::bind(path);
      } catch (...) {
        left |= ::access(path.c_str(), F_OK) == 0;
        throw;
      }
    });
    CHECK(!left);
    CHECK(refused[call::allocate] > 0);
  });
}

TEST_CASE("a function that is due while there is no memory for its goroutine is called later") {
  weft::run([] {
    constexpr int most = 10'000;
    std::atomic<int> ran{0};
    weft::chan<void> end;
    auto run = [&ran](weft::chan<void> until) {
      return [&ran, until] {
        ++ran;
        until.recv();
      };
    };
    // The memory of these timers is kept for those that follow.
    weft::chan<void> at_once;
    at_once.close();
    for (int i = 0; i < most; ++i) weft::after_func(10ms, run(at_once));
    REQUIRE(eventually([&] { return ran == most; }));
    ran = 0;
    int n = 0;
    fails.from(1, call::map, true);
    // None of these goroutines ends, so the stacks run out at some time. (A failure alone does not show that: other
    // calls ask for memory, too.)
    while (n < most && (fails.failed == 0 || eventually([&] { return ran == n; }, 100ms))) {
      for (int i = 0; i < 32; ++i, ++n) {
        weft::after_func(0s, run(end));
      }
      weft::sleep(1ms);
    }
    CHECK(fails.stop() != 0);
    CHECK(eventually([&] { return ran == n; }));
    end.close();
    CHECK(eventually([] { return weft::num_goroutines() <= 1; }));
  });
}

TEST_CASE("threads that cannot be started are done without") {
  auto block = [] {
    group w;
    for (int i = 0; i < 6; ++i) w.go([] { weft::blocking([] { ::usleep(30'000); }); });
  };
  auto compute = [] {
    group w;
    for (int i = 0; i < 3; ++i) w.go([] { compute_for(20ms); });
  };
  auto lock = [] {
    group w;
    for (int i = 0; i < 3; ++i) {
      w.go([] {
        try {
          weft::lock_os_thread();
        } catch (const std::system_error&) {
          return;  // otherwise no thread would be left for the others
        }
        try {
          weft::sleep(100us);
        } catch (const std::bad_alloc&) {  // no room for its timer
        }
        weft::unlock_os_thread();
      });
    }
  };
  weft::run(
      [&] {
        survives(block);
        survives(compute);
        survives(lock);
      },
      {.procs = 2});
  CHECK(survives_without_threads(block) > 0);
  survives_without_threads(compute);  // may need no thread
  survives_without_threads(lock);
}

TEST_CASE("lock_os_thread throws when no thread can be started for the others") {
  for (bool at_the_limit : {true, false}) {
    weft::run(
        [] {
          for (call c : {call::thread, call::allocate}) {
            fails.from(1, c, true);
            bool tied = works([] { weft::lock_os_thread(); });
            bool touched = fails.stop() != 0;
            CHECK(touched);
            CHECK(!tied);
          }
          weft::sleep(1ms);
          weft::lock_os_thread();
          weft::sleep(1ms);
          weft::unlock_os_thread();
        },
        {.procs = 1, .max_threads = at_the_limit ? 1U : 10U});
  }
}

TEST_CASE("set_procs throws when the system refuses") {
  weft::run(
      [] {
        static unsigned n;
        n = 4;
        refusals refused = survives([] {
          n = n < 60 ? n + 1 : 4;
          weft::set_procs(n);
          weft::set_procs(2);
        });
        CHECK(refused[call::allocate] > 0);
      },
      {.procs = 2});
}
