// The primitives of <weft/sync.hpp>, and the turns of a descriptor, on the whole scheduler, in interleavings that a
// seed determines (support/simulation.hpp). Goroutines and plain threads use them, with time limits.

#include "api/src/net/fd_mutex.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/simulation.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <utility>

using weft::rt::microsecond;
using weft::test::interleaving;
using weft::test::seeds;
using weft::test::simulation;
using namespace std::chrono_literals;

namespace {

std::chrono::nanoseconds some_time(simulation& s) { return std::chrono::nanoseconds(s.up_to(20 * microsecond)); }

void stay_a_moment(simulation& s) {
  if (s.one_in(4)) weft::yield();
  if (s.one_in(8)) simulation::compute(some_time(s).count());
  weft::rt::interleave_point();
}

// Three goroutines and a plain thread each call `what` several times.
std::string all_do(std::uint64_t seed, const std::function<void(simulation&)>& what) {
  simulation s(seed);
  constexpr int times = 5;
  bool begun = false;
  int thread_is_done = 0;
  s.add_weft([&] {
    begun = true;
    weft::wait_group w;
    for (int i = 0; i < 3; ++i) {
      w.go([&] {
        for (int k = 0; k < times; ++k) what(s);
      });
    }
    w.wait();
    while (!thread_is_done) weft::sleep(std::chrono::microseconds(10));
  });
  s.add([&] {
    interleaving::wait_until([&] { return begun; });
    for (int k = 0; k < times; ++k) what(s);
    thread_is_done = 1;
  });
  return s.run();
}

// Counts the holders of a lock in plain variables.
struct holders {
  int writers = 0, readers = 0;

  void write(simulation& s) {
    interleaving::check(++writers == 1 && readers == 0, "not alone");
    stay_a_moment(s);
    interleaving::check(writers == 1 && readers == 0, "not alone any more");
    --writers;
  }
  void read(simulation& s) {
    ++readers;
    interleaving::check(writers == 0, "beside a writer");
    stay_a_moment(s);
    interleaving::check(writers == 0, "beside a writer that came later");
    --readers;
  }
};

}  // namespace

TEST_CASE("simulation of mutex: one holder, and nobody sleeps beside a free one") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    weft::mutex m;
    holders h;
    REQUIRE(all_do(seed, [&](simulation& s) {
              if (s.one_in(4)) {
                if (!m.try_lock_for(some_time(s))) return;
              } else if (s.one_in(4)) {
                if (!m.try_lock()) return;
              } else {
                m.lock();
              }
              h.write(s);
              m.unlock();
            }) == "");
  }
}

TEST_CASE("simulation of shared_mutex: one writer, or readers") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    weft::shared_mutex m;
    holders h;
    REQUIRE(all_do(seed, [&](simulation& s) {
              if (s.one_in(3)) {
                if (s.one_in(3)) {
                  if (!m.try_lock_for(some_time(s))) return;
                } else {
                  m.lock();
                }
                h.write(s);
                m.unlock();
              } else {
                if (s.one_in(3)) {
                  if (!m.try_lock_shared_for(some_time(s))) return;
                } else {
                  m.lock_shared();
                }
                h.read(s);
                m.unlock_shared();
              }
            }) == "");
  }
}

namespace {

// When the writer comes: while another one is inside, or after that one has woken the readers.
enum class comes { before_they_are_woken, soon_after, late };

// On the only P. Two readers are woken, and do not come, as the goroutine that woke them keeps the P and reads again
// and again. Checks when a writer on another thread gets the lock.
std::string one_reads_on(std::uint64_t seed, comes when) {
  simulation s(seed);
  weft::shared_mutex m;
  bool writer_comes = false, got_it = false;
  s.add_weft([&] {
    m.lock();
    weft::wait_group readers;
    for (int i = 0; i < 2; ++i) {
      readers.go([&] {
        m.lock_shared();
        m.unlock_shared();
      });
    }
    weft::yield();
    {
      weft::no_preemption keep;
      if (when == comes::before_they_are_woken) {
        writer_comes = true;
        simulation::compute(500 * microsecond);
      }
      m.unlock();
      if (when == comes::late) simulation::compute(1500 * microsecond);
      const auto until = std::chrono::steady_clock::now() + (when == comes::late ? 500us : 3ms);
      while (!got_it && std::chrono::steady_clock::now() < until) {
        m.lock_shared();
        writer_comes = true;
        simulation::compute(50 * microsecond);
        m.unlock_shared();
      }
      interleaving::check(got_it, "the writer waits on");
    }
    readers.wait();
  });
  s.add([&] {
    interleaving::wait_until([&] { return writer_comes; });
    m.lock();
    got_it = true;
    m.unlock();
  });
  return s.run();
}

}  // namespace

TEST_CASE("simulation of shared_mutex: a writer waits only so long for readers that were woken") {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    if (simulation(seed).procs() != 1) continue;
    INFO("seed " << seed);
    for (comes when : {comes::before_they_are_woken, comes::soon_after, comes::late}) {
      INFO("it comes " << static_cast<int>(when));
      REQUIRE(one_reads_on(seed, when) == "");
    }
  }
}

// When the first writer has waited for a millisecond, it wakes by itself to look again. At about that moment the last
// reader leaves.
TEST_CASE("simulation of shared_mutex: a writer that looks again keeps its place") {
  for (std::uint64_t seed = 0; seed < seeds(1500); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    weft::shared_mutex m;
    std::chrono::steady_clock::time_point first_came{};
    bool first_comes = false, second_comes = false;
    int served = 0, first_served = 0;
    s.add_weft([&] {
      m.lock_shared();
      first_comes = true;
      while (first_came.time_since_epoch() == 0ns) weft::sleep(1us);
      simulation::compute(100 * microsecond);
      second_comes = true;
      const auto leaves = first_came + 1ms + std::chrono::nanoseconds(s.up_to(microsecond));
      simulation::compute((leaves - std::chrono::steady_clock::now()).count());
      m.unlock_shared();
      while (served != 2) weft::sleep(10us);
    });
    const auto write = [&](bool& comes, bool first) {
      interleaving::wait_until([&] { return comes; });
      if (first) first_came = std::chrono::steady_clock::now();
      m.lock();
      ++served;
      if (first) first_served = served;
      m.unlock();
    };
    s.add([&] { write(first_comes, true); });
    s.add([&] { write(second_comes, false); });
    REQUIRE(s.run() == "");
    REQUIRE(first_served == 1);
  }
}

// Nobody computes or sleeps for long here, so nobody waits for long, either: neither for one who should pass on what it
// has left, nor until a writer looks again.
TEST_CASE("simulation of shared_mutex: whoever leaves it passes it on, whoever else comes and goes") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    weft::shared_mutex m;
    int done = 0, begun = 0;
    const auto lock_thrice = [&](bool reads) {
      ++begun;
      for (int k = 0; k < 3; ++k) {
        if (reads) {
          std::shared_lock share(m);
        } else {
          std::unique_lock alone(m);
        }
      }
      ++done;
    };
    s.add_weft([&] {
      const auto before = std::chrono::steady_clock::now();
      weft::go([&] { lock_thrice(true); });
      weft::go([&] { lock_thrice(false); });
      while (done != 4) weft::sleep(1us);
      interleaving::check(std::chrono::steady_clock::now() - before < 500us, "somebody has waited for long");
    });
    for (bool reads : {true, s.one_in(2)}) {
      s.add([&, reads] {
        interleaving::wait_until([&] { return begun != 0; });
        lock_thrice(reads);
      });
    }
    REQUIRE(s.run() == "");
  }
}

// On the only P. A reader has left it, and waits for the P to pass it on. A writer that looks again meanwhile, as it
// has waited for a millisecond now, does not go before one that has waited for 20.
TEST_CASE("simulation of shared_mutex: what is left is not taken out of turn") {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    simulation s(seed);
    if (s.procs() != 1) continue;
    INFO("seed " << seed);
    weft::shared_mutex m;
    weft::event inside;
    int served = 0, first_served = 0;
    s.add_weft([&] {
      weft::wait_group all;
      all.go([&] {
        m.lock_shared();
        inside.set();
        simulation::compute(25 * weft::rt::millisecond);  // it loses its P
        m.unlock_shared();
      });
      weft::sleep(24ms);
      simulation::compute(8 * weft::rt::millisecond);
      all.wait();
      while (served != 2) weft::sleep(5ms);
    });
    const auto write_after = [&](weft::rt::nanos d) {
      inside.wait();
      simulation::compute(d);
      m.lock();
      ++served;
      if (d < 10 * weft::rt::millisecond) first_served = served;
      m.unlock();
    };
    s.add([&] { write_after(5 * weft::rt::millisecond); });
    s.add([&] { write_after(24500 * microsecond); });
    REQUIRE(s.run() == "");
    REQUIRE(first_served == 1);
  }
}

// A reader has left it, and is held up on its way to pass it on: its P was taken while it computed. Meanwhile another
// one comes in, and passes it on when it leaves. The last one to lock it is a writer, which destroys it. What lies
// there then looks like a lock that is left, and must stay as it is.
TEST_CASE("simulation of shared_mutex: one who comes late to pass it on does not touch what is gone") {
  constexpr std::uint32_t looks_left = 2;
  static_assert(sizeof(weft::shared_mutex) == sizeof looks_left);
  int late = 0;
  for (std::uint64_t seed = 0; seed < seeds(500); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    alignas(weft::shared_mutex) std::byte memory[sizeof looks_left];
    auto* const m = new (memory) weft::shared_mutex;
    weft::event writes;
    bool inside = false, is_gone = false, was_late = false;
    int served = 0;
    s.add_weft([&] {
      const auto leaves = std::chrono::steady_clock::now() + 20ms;
      weft::wait_group all;
      all.go([&] {
        m->lock_shared();
        inside = true;
        simulation::compute(20 * weft::rt::millisecond);
        m->unlock_shared();
        was_late = is_gone;
      });
      while (!inside) weft::yield();
      all.go([&] {
        m->lock();
        writes.set();
        simulation::compute(5 * microsecond);  // the thread comes, and waits
        ++served;
        m->unlock();
      });
      weft::sleep_until(leaves + std::chrono::nanoseconds(s.up_to(8 * microsecond)));
      m->lock_shared();
      ++served;
      m->unlock_shared();
      all.wait();
      while (served != 3) weft::sleep(10us);
    });
    s.add([&] {
      writes.wait();
      m->lock();
      const bool is_last = ++served == 3;
      m->unlock();
      if (!is_last) return;
      m->~shared_mutex();
      std::memcpy(memory, &looks_left, sizeof looks_left);
      is_gone = true;
    });
    REQUIRE(s.run() == "");
    if (is_gone) {
      std::uint32_t found;
      std::memcpy(&found, memory, sizeof found);
      REQUIRE(found == looks_left);
    } else {
      m->~shared_mutex();
    }
    late += was_late;
  }
  CHECK(late > 0);
}

TEST_CASE("simulation of semaphore and condition_variable: a bounded queue") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    weft::semaphore room(2);
    weft::mutex m;
    weft::condition_variable not_empty;
    int queued = 0, in = 0;
    REQUIRE(all_do(seed, [&](simulation& s) {
              if (s.one_in(4)) {
                if (!room.try_acquire_for(some_time(s))) return;
              } else {
                room.acquire();
              }
              interleaving::check(++in <= 2, "more than there is room for");
              {
                std::lock_guard hold(m);
                ++queued;
              }
              s.one_in(2) ? not_empty.notify_one() : not_empty.notify_all();
              {
                std::unique_lock hold(m);
                not_empty.wait(hold, [&] { return queued != 0; });
                --queued;
              }
              stay_a_moment(s);
              --in;
              room.release();
            }) == "");
  }
}

TEST_CASE("simulation of event, once_flag and wait_group: all see what was done before") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    weft::event begin;
    weft::once_flag once;
    int made = 0, arrived = 0;
    REQUIRE(all_do(seed, [&](simulation& s) {
              if (s.one_in(3)) begin.set();
              weft::call_once(once, [&] {
                stay_a_moment(s);
                ++made;
              });
              interleaving::check(made == 1, "not made, or twice");
              begin.set();
              begin.wait();
              weft::wait_group w;
              w.add(1);
              int before = arrived;
              weft::go([&] {
                ++arrived;
                w.done();
              });
              w.wait();
              interleaving::check(arrived > before, "waited for nothing");
            }) == "");
  }
}

namespace {

// A task's result, which counts the results that exist.
struct counted {
  explicit counted(int* n) noexcept : there(n) { ++*there; }
  counted(counted&& o) noexcept : there(std::exchange(o.there, nullptr)) {}
  counted& operator=(counted&&) = delete;
  ~counted() {
    if (there) --*there;
  }
  int* there;
};

}  // namespace

TEST_CASE("simulation of task: it is waited for in all ways, and its state is freed once") {
  for (std::uint64_t seed = 0; seed < seeds(2000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(all_do(seed, [&](simulation& s) {
              const auto begin = std::chrono::steady_clock::now();
              int there = 0;
              bool ended = false;
              auto t = weft::spawn([&] {
                if (s.one_in(2)) stay_a_moment(s);
                ended = true;
                return counted(&there);
              });
              auto wait = [&] {
                if (s.one_in(3)) return t.wait();
                static_cast<void>(t.wait_for(s.one_in(3) ? 10s : some_time(s)));
              };
              weft::wait_group others;
              const bool detach = s.one_in(4);
              for (std::uint64_t i = detach ? 0 : s.up_to(3); i > 0; --i) others.go(wait);
              while (s.one_in(2)) wait();
              if (detach) {
                t.detach();
                while (!ended || there != 0) weft::sleep(10us);
                return;
              }
              others.wait();
              counted result = t.join();
              interleaving::check(std::chrono::steady_clock::now() - begin < 5s, "woken by the time limit");
              interleaving::check(ended && there == 1, "joined too early");
            }) == "");
  }
}

TEST_CASE("simulation of fd_mutex: one call at a time has the turn, and exactly one is the last") {
  using weft::net::entry;
  using weft::net::leave;
  constexpr auto side = weft::net::side::read;
  for (std::uint64_t seed = 0; seed < seeds(6000); ++seed) {
    INFO("seed " << seed);
    weft::net::fd_mutex m;
    holders h;
    int last = 0;
    const bool is_closed = seed % 4 == 0;
    REQUIRE(all_do(seed, [&](simulation& s) {
              if (is_closed && s.one_in(8)) {
                if (m.close(false)) last += m.exit() == leave::last;
                return;
              }
              switch (m.lock(side)) {
                case entry::entered: break;
                case entry::inherited: interleaving::check(false, "nobody was left behind");
                case entry::closed_before: return;
                case entry::closed_meanwhile: last += m.exit() == leave::last; return;
              }
              interleaving::check(last == 0, "after the last one");
              h.write(s);
              last += m.unlock(side) == leave::last;
            }) == "");
    REQUIRE(last == (m.closed() ? 1 : 0));
  }
}
