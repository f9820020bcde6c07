// The table of legal moves, compared with the table of the design; and what happens to a timer whose state was
// overwritten.

#include "timers/timer_moves.hpp"
#include "tests/support/catch.hpp"
#include "timers/timer_heap.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace weft::rt;
using enum timer_status;

namespace {

constexpr std::array all_states{no_status, waiting,   running,          deleted,        removing,
                                removed,   modifying, modified_earlier, modified_later, moving};

template <timer_status From, timer_status To>
concept compiles = requires(timer* t) {
  try_move<From, To>(t);
  finish_move<From, To>(t);
};

// The moves where a mistake would hurt most, one by one. The rest is compared below.
static_assert(compiles<waiting, running> && compiles<running, no_status> && compiles<modifying, deleted>);
static_assert(!compiles<deleted, running>);           // a stopped timer never fires
static_assert(!compiles<modified_earlier, running>);  // nor does one whose place is stale
static_assert(!compiles<modified_later, running>);
static_assert(!compiles<deleted, waiting>);  // a stopped timer is armed again only through `modifying`
static_assert(!compiles<removing, waiting> && !compiles<removed, deleted> && !compiles<no_status, deleted>);
static_assert(!compiles<waiting, waiting>);

// How a process of its own ended: its exit code, and what it wrote to stderr.
struct death {
  int code = -1;
  std::string said;
};
death of(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::alarm(20);  // ends an operation that looks again forever
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  death d;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) d.said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) d.code = WEXITSTATUS(status);
  return d;
}

// Five timers in a heap, the last one stopped; the first is due at 10.
struct some_heap {
  timer_heap h;
  std::array<timer, 5> ts;

  some_heap() {
    for (std::size_t i = 0; i < ts.size(); ++i) {
      ts[i].when = 10 * static_cast<nanos>(i + 1);
      ts[i].function = [](timer*, std::uint64_t, nanos) noexcept {};
      h.make_room();
      (void)h.add(&ts[i]);
    }
    del_timer(&ts.back(), nullptr);
  }
  timer& head() { return ts.front(); }
};

}  // namespace

TEST_CASE("timer moves: the table is that of the design") {
  const std::map<timer_status, std::vector<timer_status>> design{
      {no_status, {waiting, modifying}},
      {waiting, {running, modifying, moving, removed}},
      {running, {waiting, no_status}},
      {deleted, {removing, modifying, removed}},
      {removing, {removed}},
      {removed, {waiting, modifying}},
      {modifying, {deleted, modified_earlier, modified_later, waiting}},
      {modified_earlier, {modifying, moving, removed}},
      {modified_later, {modifying, moving, removed}},
      {moving, {waiting}},
  };
  for (timer_status from : all_states) {
    for (timer_status to : all_states) {
      const auto& row = design.at(from);
      bool legal = std::find(row.begin(), row.end(), to) != row.end();
      INFO(describe(from) << " -> " << describe(to));
      CHECK(is_legal_move(from, to) == legal);
    }
  }
  // From a state that is not held for long there is a way out, and only its holder takes it.
  for (timer_status s : {running, removing, modifying, moving}) CHECK(legal_moves_from(s).bits != 0);
  CHECK(is_legal_move(armed_states, modifying));
  CHECK_FALSE(is_legal_move(resting_states, running));
}

TEST_CASE("timer moves: an operation that meets a state it cannot have met is fatal, and names both states") {
  auto unknown = static_cast<timer_status>(0xdb);
  struct operation {
    const char* name;
    timer_status to;
    std::function<void(some_heap&)> call;
    std::vector<timer_status> fatal_for;
  };
  const std::vector<timer_status> out_of_place{no_status, running, removing, removed, moving, unknown};
  bool ran;
  const std::vector<operation> operations{
      {"add",
       waiting,
       [](some_heap& s) { (void)s.h.add(&s.head()); },
       {waiting, running, deleted, removing, modifying, modified_earlier, modified_later, moving, unknown}},
      {"del_timer", modifying, [](some_heap& s) { (void)del_timer(&s.head(), nullptr); }, {unknown}},
      {"change_timer",
       modifying,
       [](some_heap& s) {
         (void)change_timer(s.h, &s.head(), {5, 0, s.head().function, 0});
       },
       {unknown}},
      {"run_head", running, [&](some_heap& s) { s.h.check(10, false, &ran); }, out_of_place},
      {"clean_head", moving, [](some_heap& s) { s.h.tidy(); }, out_of_place},
      {"rebuild", moving,
       [&](some_heap& s) {
         (void)change_timer(s.h, &s.ts[2], {5, 0, s.head().function, 0});
         s.h.check(10, false, &ran);
       },
       out_of_place},
      {"take_all", moving, [](some_heap& s) { timer_heap{}.take_all(s.h); }, out_of_place},
      {"clear", removed, [](some_heap& s) { s.h.clear(); }, out_of_place},
  };
  for (const operation& o : operations) {
    for (timer_status seen : o.fatal_for) {
      death d = of([&] {
        some_heap s;
        s.head().status.store(seen, release);
        o.call(s);
      });
      INFO(o.name << " meets " << describe(seen) << "; it said: " << d.said);
      CHECK(d.code == 2);
      std::string from = std::string(" from ") + describe(seen) + " (" + std::to_string(static_cast<int>(seen)) + ")";
      CHECK(d.said.find(std::string(o.name) + " would move timer 0x") != std::string::npos);
      CHECK(d.said.find(from + " to " + describe(o.to)) != std::string::npos);
    }
  }
}

TEST_CASE("timer moves: whoever finds a state changed that it held itself is told, too") {
  death d = of([] {
    timer t;
    t.status.store(moving, release);  // somebody has overwritten the state
    finish_move<modifying, waiting>(&t);
  });
  INFO(d.said);
  CHECK(d.code == 2);
  CHECK(d.said.find("from moving (9) to waiting") != std::string::npos);
}
