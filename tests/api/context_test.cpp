// <weft/context.hpp>: trees of contexts, their ends, values, deadlines and stop tokens.
#include "tests/support/catch.hpp"

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

struct user_key {
  using value_type = std::string;
};
struct shared_key {
  using value_type = std::shared_ptr<int>;
};
struct number_key {
  using value_type = const int;
};
struct counted_key {
  using value_type = std::shared_ptr<int>;
};

bool closed(const weft::context& c) { return c.done().try_recv() == weft::recv_result::closed; }
bool canceled(const weft::context& c) { return c.err() == std::errc::operation_canceled && closed(c); }
bool timed_out(const weft::context& c) { return c.err() == std::errc::timed_out && closed(c); }
bool active(const weft::context& c) { return !c.err() && !closed(c) && !c.cause(); }

std::string what(const std::exception_ptr& e) {
  if (!e) return "";
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  }
}

[[maybe_unused]] void take(const weft::context&) {}
weft::cancellable make() { return weft::with_cancel(weft::background()); }

// As part of a temporary, `ctx` cannot be used. As part of a variable, it can.
using temporary_ctx = decltype((weft::with_cancel(weft::background()).ctx));
using variable_ctx = decltype((std::declval<weft::cancellable&>().ctx));
static_assert(!std::is_convertible_v<temporary_ctx, weft::context>);
static_assert(!std::is_constructible_v<weft::cancellable_ctx, temporary_ctx>);  // auto c = with_cancel(parent).ctx
static_assert(!std::is_invocable_v<decltype(take), temporary_ctx>);
static_assert(std::is_convertible_v<variable_ctx, weft::context>);
static_assert(std::is_invocable_v<decltype(take), variable_ctx>);
template <class T>
concept has_done = requires(T&& t) {
  std::forward<T>(t).done();
};
static_assert(!has_done<temporary_ctx> && has_done<variable_ctx> && has_done<weft::context>);
static_assert(std::is_same_v<decltype((make().ctx)), temporary_ctx>);  // whatever function returned it
template <class... A>
concept can_go = requires(A&&... a) {
  weft::go(take, std::forward<A>(a)...);
  weft::spawn(take, std::forward<A>(a)...);
};
static_assert(!can_go<temporary_ctx> && can_go<variable_ctx> && can_go<weft::context&>);

}  // namespace

TEST_CASE("context: what with_cancel returns can be taken apart, kept and replaced") {
  const auto [constant, cancel_constant] = weft::with_cancel(weft::background());
  auto&& [extended, cancel_extended] = make();
  REQUIRE(active(constant));
  REQUIRE(active(extended));
  cancel_constant();
  cancel_extended();
  REQUIRE(canceled(constant));
  REQUIRE(canceled(extended));

  weft::cancellable kept;
  REQUIRE(active(kept.ctx));
  kept = make();
  weft::context first = kept.ctx;
  auto& [ctx, cancel] = kept;
  REQUIRE(active(ctx));
  kept = make();
  REQUIRE(canceled(first));
  REQUIRE(active(kept.ctx));

  std::vector<weft::cancellable> many;
  for (int i = 0; i < 5; ++i) many.push_back(weft::with_cancel(kept.ctx));
  first = many.front().ctx;
  REQUIRE(active(first));
  many.clear();
  REQUIRE(canceled(first));
  cancel();
  REQUIRE(canceled(kept.ctx));
}

TEST_CASE("context: the background is never cancelled") {
  weft::context c = weft::background();
  REQUIRE(c.done().is_nil());
  REQUIRE(!c.err());
  REQUIRE(c.cause() == nullptr);
  REQUIRE(!c.deadline());
  REQUIRE(c.value<user_key>() == nullptr);
  REQUIRE_FALSE(c.stop_token().stop_possible());
  auto v = weft::with_value<number_key>(c, 1);
  REQUIRE(v.done().is_nil());
  REQUIRE_FALSE(v.stop_token().stop_possible());
}

TEST_CASE("context: cancelling goes down, not up") {
  auto [top, cancel_top] = weft::with_cancel(weft::background());
  auto [left, cancel_left] = weft::with_cancel(top);
  auto [right, cancel_right] = weft::with_cancel(top);
  auto below = weft::with_cancel(weft::with_value<number_key>(left, 7));
  REQUIRE(active(top));
  REQUIRE(active(below.ctx));
  cancel_left();
  REQUIRE(canceled(left));
  REQUIRE(canceled(below.ctx));
  REQUIRE(active(top));
  REQUIRE(active(right));
  REQUIRE(*below.ctx.value<number_key>() == 7);
  cancel_top();
  cancel_top();
  REQUIRE(canceled(right));
  auto [late, cancel_late] = weft::with_cancel(right);  // below a context that is cancelled already
  REQUIRE(canceled(late));
}

TEST_CASE("context: cancel cancels when it is destroyed; handles share") {
  weft::context kept;
  {
    auto c = weft::with_cancel(weft::background());
    kept = c.ctx;
    auto moved = std::move(c.cancel);
    c.cancel();  // does nothing: it was moved from
    REQUIRE(active(kept));
  }
  REQUIRE(canceled(kept));
}

TEST_CASE("context: causes") {
  auto [top, cancel_top] = weft::with_cancel(weft::background());
  auto [own, cancel_own] = weft::with_cancel(top);
  auto [below, cancel_below] = weft::with_cancel(top);
  cancel_own(std::make_exception_ptr(std::runtime_error("own reason")));
  cancel_top(std::make_exception_ptr(std::runtime_error("reason")));
  cancel_below();  // too late to matter
  REQUIRE(what(own.cause()) == "own reason");
  REQUIRE(what(top.cause()) == "reason");
  REQUIRE(what(below.cause()) == "reason");
  auto [plain, cancel_plain] = weft::with_cancel(weft::background());
  cancel_plain();
  REQUIRE_THROWS_AS(std::rethrow_exception(plain.cause()), std::system_error);
}

TEST_CASE("context: values are found from below and live as long as the context") {
  auto counted = std::make_shared<int>(0);
  {
    auto a = weft::with_value<user_key>(weft::background(), "ann");
    auto b = weft::with_value<shared_key>(a, counted);
    auto [c, cancel] = weft::with_cancel(b);
    auto d = weft::with_value<user_key>(c, "dan");
    REQUIRE(*c.value<user_key>() == "ann");
    REQUIRE(*d.value<user_key>() == "dan");
    REQUIRE(*d.value<shared_key>() == counted);
    REQUIRE(d.value<number_key>() == nullptr);
    REQUIRE(counted.use_count() == 2);
  }
  REQUIRE(counted.use_count() == 1);
}

TEST_CASE("context: the last handle frees the values, also if a deadline passes just then") {
  weft::run([] {
    for (int i = 0; i < 2000; ++i) {
      auto value = std::make_shared<int>(i);
      {
        auto [ctx, cancel] = weft::with_timeout(weft::with_value<counted_key>(weft::background(), value), 20us);
        (void)ctx.done().recv();
      }
      REQUIRE(value.use_count() == 1);
    }
  });
}

TEST_CASE("context: deadlines") {
  bool ok = true;
  steady::duration took{};
  weft::run([&] {
    auto begin = steady::now();
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 5ms);
    auto [below, cancel_below] = weft::with_cancel(ctx);
    auto [later, cancel_later] = weft::with_timeout(ctx, 1h);
    auto [sooner, cancel_sooner] = weft::with_deadline(ctx, begin + 1ms);
    ok = ok && ctx.deadline() && *ctx.deadline() >= begin + 5ms && *ctx.deadline() < begin + 1s;
    ok = ok && later.deadline() == ctx.deadline() && below.deadline() == ctx.deadline();
    ok = ok && sooner.deadline() == begin + 1ms;
    ok = ok && (active(ctx) || steady::now() >= begin + 5ms);
    ok = ok && !sooner.done().recv() && timed_out(sooner);
    ok = ok && !below.done().recv();
    took = steady::now() - begin;
    ok = ok && timed_out(ctx) && timed_out(below) && timed_out(later);
    ok = ok && what(below.cause()) != "";

    auto [past, cancel_past] = weft::with_timeout(weft::background(), -1s);
    ok = ok && timed_out(past);
    auto [never, cancel_never] = weft::with_timeout(weft::background(), std::chrono::hours::max());
    ok = ok && active(never) && !never.deadline();
    auto [early, cancel_early] = weft::with_timeout(weft::background(), 1h);
    cancel_early();
    ok = ok && canceled(early);
  });
  REQUIRE(ok);
  REQUIRE(took >= 5ms);
}

TEST_CASE("context: a deadline holds beyond the run() in which it was set") {
  weft::context passes, comes, cancelled_late;
  weft::cancel_function keep_one, keep_other, cancel_late;
  weft::run([&] {
    auto a = weft::with_timeout(weft::background(), 20ms);
    passes = a.ctx;
    keep_one = std::move(a.cancel);
    auto b = weft::with_timeout(weft::background(), 200ms);
    comes = b.ctx;
    keep_other = std::move(b.cancel);
    auto c = weft::with_timeout(weft::background(), 20ms);
    cancelled_late = c.ctx;
    cancel_late = std::move(c.cancel);
  });
  std::this_thread::sleep_for(30ms);
  CHECK(passes.err() == std::errc::timed_out);
  cancel_late();
  CHECK(cancelled_late.err() == std::errc::timed_out);
  CHECK(!comes.err());
  weft::run([&] {
    auto below = weft::with_timeout(comes, 1h);
    CHECK(below.ctx.done().recv_for(10s) == weft::recv_result::closed);
    CHECK(weft::time_point::clock::now() >= *comes.deadline());
    CHECK(comes.err() == std::errc::timed_out);
  });
}

// Between "main has returned" and the end of the run() a plain thread gets no timer.
TEST_CASE("context: a deadline holds, also if it is asked for while a later run() ends") {
  bool asked_in_time = false;
  for (auto limit = 100ms; !asked_in_time && limit < 1min; limit *= 5) {
    weft::context ctx;
    weft::cancel_function keep;
    weft::run([&] {
      auto c = weft::with_timeout(weft::background(), limit);
      ctx = c.ctx;
      keep = std::move(c.cancel);
    });
    std::atomic<bool> ends{false}, asked{false};
    std::thread asker([&] {
      while (!ends) std::this_thread::yield();
      std::this_thread::sleep_for(5ms);
      asked_in_time = !ctx.err();
      asked = true;
    });
    weft::run(
        [&] {
          weft::go([&] {
            while (!asked) {}
          });
          weft::yield();
          ends = true;
        },
        {.procs = 2, .shutdown_grace = 10s});
    asker.join();
    std::this_thread::sleep_for(limit);
    CHECK(ctx.err() == std::errc::timed_out);
  }
  CHECK(asked_in_time);
}

TEST_CASE("context: without a runtime everything but timers works") {
  auto [ctx, cancel] = weft::with_cancel(weft::background());
  std::thread t([cancel = std::move(cancel)] { cancel(); });
  REQUIRE_FALSE(ctx.done().recv());
  t.join();
  REQUIRE(canceled(ctx));
  REQUIRE_THROWS_AS((void)weft::with_timeout(weft::background(), 1h), std::logic_error);
  REQUIRE_THROWS_WITH((void)weft::with_timeout(weft::background(), 1h),
                      "weft: a context's deadline without a running runtime: call it inside weft::run()");
  auto [past, cancel_past] = weft::with_timeout(weft::background(), 0s);
  REQUIRE(timed_out(past));
  auto [below, cancel_below] = weft::with_timeout(past, 1h);
  REQUIRE(timed_out(below));
}

TEST_CASE("context: channels and select give up with it") {
  std::error_code sent, received;
  std::size_t chosen = 9;
  weft::run([&] {
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 2ms);
    weft::chan<int> c;
    try {
      c.send(1, ctx);
    } catch (const std::system_error& e) {
      sent = e.code();
    }
    auto other = weft::with_cancel(weft::background());
    weft::go([&] { other.cancel(); });
    try {
      c.recv(other.ctx);
    } catch (const std::system_error& e) {
      received = e.code();
    }
    chosen = weft::select(weft::on_recv(c, [](std::optional<int>) {}), weft::on_recv(ctx.done(), [](bool) {}));
  });
  REQUIRE(sent == std::errc::timed_out);
  REQUIRE(received == std::errc::operation_canceled);
  REQUIRE(chosen == 1);
}

TEST_CASE("context: stop tokens") {
  auto [top, cancel_top] = weft::with_cancel(weft::background());
  auto below = weft::with_cancel(weft::with_value<number_key>(top, 1));
  std::stop_token token = below.ctx.stop_token();
  REQUIRE(token.stop_possible());
  REQUIRE_FALSE(token.stop_requested());
  int called = 0;
  bool whole_tree = false;
  std::stop_callback on_stop(top.stop_token(), [&, &tree = below.ctx] {
    ++called;
    whole_tree = canceled(tree);
  });
  std::stop_callback on_stop_below(token, [&, &again = cancel_top] {
    ++called;
    again();  // from within a callback
  });
  cancel_top();
  REQUIRE(called == 2);
  REQUIRE(whole_tree);
  REQUIRE(token.stop_requested());
  REQUIRE(below.ctx.stop_token().stop_requested());
  auto [late, cancel_late] = weft::with_cancel(top);
  REQUIRE(late.stop_token().stop_requested());

  bool by_deadline = false;
  weft::run([&] {
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 1ms);
    weft::event stopped;
    std::stop_callback set(ctx.stop_token(), [&] { stopped.set(); });
    by_deadline = stopped.wait_for(10s);
  });
  REQUIRE(by_deadline);
}

TEST_CASE("context: who asks a cancelled context for a stop_token does not run the callbacks of others") {
  auto [top, cancel] = weft::with_cancel(weft::background());
  auto below = weft::with_cancel(top);
  std::vector<std::thread::id> called_by;
  // The callback that runs first asks for a stop_token while the other one is still to be called.
  auto ask = [&, &top = top] {
    called_by.push_back(std::this_thread::get_id());
    std::thread([&] {
      (void)top.stop_token();
      (void)below.ctx.stop_token();
    }).join();
  };
  std::stop_callback on_stop(top.stop_token(), ask);
  std::stop_callback on_stop_below(below.ctx.stop_token(), ask);
  cancel();
  REQUIRE(called_by == std::vector(2, std::this_thread::get_id()));
}

TEST_CASE("context: who calls stop callbacks keeps its thread until they are done") {
  // Takes so long that the goroutine loses its P, and is asked to give way.
  auto call_weft = [] {
    weft::chan<int> c{1};
    for (auto end = steady::now() + 50ms; steady::now() < end;) {
      (void)c.try_send(1);
      int got;
      (void)c.try_recv(got);
    }
  };
  SECTION("who destroys one waits for it") {
    int begun = 0, ended = 0;
    bool had_ended = false;
    weft::run(
        [&] {
          auto [ctx, cancel] = weft::with_cancel(weft::background());
          auto body = [&] {
            ++begun;
            call_weft();
            ++ended;
          };
          auto on_stop = std::make_unique<std::stop_callback<decltype(body)>>(ctx.stop_token(), body);
          weft::wait_group wg;
          wg.go([&, &c = cancel] { c(); });
          wg.go([&] {
            while (begun == 0) weft::yield();
            on_stop.reset();
            had_ended = ended == 1;
          });
          wg.wait();
        },
        {.procs = 1});
    CHECK(ended == 1);
    CHECK(had_ended);
  }
  SECTION("one may destroy itself") {
    weft::run(
        [&] {
          auto [ctx, cancel] = weft::with_cancel(weft::background());
          std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop;
          on_stop = std::make_unique<std::stop_callback<std::function<void()>>>(ctx.stop_token(), [&] {
            call_weft();
            on_stop.reset();
          });
          std::atomic<bool> done{false};
          weft::wait_group wg;
          for (int i = 0; i < 4; ++i) {
            wg.go([&] {
              while (!done) weft::yield();
            });
          }
          wg.go([&, &c = cancel] {
            c();
            done = true;
          });
          wg.wait();
        },
        {.procs = 2});
    SUCCEED();
  }
}

// The callbacks call weft, where a goroutine would otherwise be stopped for good.
TEST_CASE("context: run() ends in the midst of a cancel(), which goes on to the last stop callback") {
  const auto root = weft::with_cancel(weft::background());
  std::vector<weft::cancellable> below;
  weft::chan<int> to(100);
  std::atomic<int> calls{0};
  auto call = [&] {
    ++calls;
    for (auto end = steady::now() + 10ms; steady::now() < end;) {}
    (void)to.try_send(1);
  };
  std::vector<std::unique_ptr<std::stop_callback<decltype(call)>>> callbacks;
  for (int i = 0; i < 3; ++i) {
    below.push_back(weft::with_cancel(root.ctx));
    for (int k = 0; k < 2; ++k) {
      callbacks.push_back(std::make_unique<std::stop_callback<decltype(call)>>(below.back().ctx.stop_token(), call));
    }
  }
  weft::run(
      [&] {
        weft::go([&] { root.cancel(); });
        while (calls == 0) weft::yield();
      },
      {.procs = 2, .shutdown_grace = 20s});
  CHECK(calls == 6);
  CHECK(to.size() == 6);
  for (const auto& c : below) CHECK(c.ctx.stop_token().stop_requested());
}

TEST_CASE("context: a deadline that passes while run() waits for goroutines that compute") {
  std::error_code seen;
  std::atomic<bool> over{false};
  std::thread asker;
  weft::run(
      [&] {
        auto c = weft::with_timeout(weft::background(), 10ms);
        weft::go([&] {
          while (!over) {}
        });
        asker = std::thread([&, c = std::move(c)] {
          for (auto limit = steady::now() + 10s; !seen && steady::now() < limit;) {
            seen = c.ctx.err();
            std::this_thread::sleep_for(1ms);
          }
          over = true;
        });
        weft::yield();
      },
      {.procs = 2, .shutdown_grace = 20s});
  asker.join();
  CHECK(seen == std::errc::timed_out);
}

TEST_CASE("context: assigned to itself, a cancel_function cancels nothing") {
  auto [ctx, cancel] = weft::with_cancel(weft::background());
  auto& same = cancel;
  cancel = std::move(same);
  CHECK_FALSE(canceled(ctx));
  cancel();
  CHECK(canceled(ctx));
}

TEST_CASE("context: a cancelled child leaves nothing in its parent") {
  auto probe = std::make_shared<int>(0);
  weft::run([&] {
    auto [top, cancel_top] = weft::with_cancel(weft::background());
    for (int i = 0; i < 1000; ++i) {
      auto [child, cancel] = weft::with_cancel(weft::with_value<shared_key>(top, probe));
      auto [timed, cancel_timed] = weft::with_timeout(child, 1h);
      (void)timed.done();
    }
  });
  REQUIRE(probe.use_count() == 1);
}

TEST_CASE("context: many cancel, come and go at once") {
  std::atomic<int> wrong{0};
  weft::run([&] {
    for (int round = 0; round < 100; ++round) {
      auto [top, cancel_top] = weft::with_cancel(weft::background());
      weft::wait_group wg;
      for (int i = 0; i < 8; ++i) {
        wg.go([&, &root = top] {
          for (int k = 0; k < 20; ++k) {
            auto [a, cancel_a] = weft::with_timeout(root, 1h);
            auto [b, cancel_b] = weft::with_cancel(a);
            if (k % 4 == 0) (void)b.stop_token();
            if (k % 3 == 0) weft::go([c = b] { (void)c.done().recv(); });
            if (k % 2 == 0) cancel_a();
            if (k % 2 == 0 && !canceled(b)) wrong.fetch_add(1);
          }
        });
      }
      for (int i = 0; i < 2; ++i) {
        wg.go([&, &root = top, &cancel = cancel_top] {
          weft::yield();
          auto [mine, cancel_mine] = weft::with_cancel(root);
          cancel();
          if (!canceled(root) || !canceled(mine)) wrong.fetch_add(1);
        });
      }
      wg.wait();
    }
  });
  REQUIRE(wrong.load() == 0);
}

TEST_CASE("context: a second cancel() returns when all below is cancelled, and its own channel closed") {
  std::atomic<int> wrong{0};
  weft::run([&] {
    for (int round = 0; round < 20; ++round) {
      auto [top, cancel_top] = weft::with_cancel(weft::background());
      auto [middle, cancel_middle] = weft::with_cancel(top);
      std::vector<weft::cancellable> below;
      for (int i = 0; i < 2000; ++i) below.push_back(weft::with_cancel(middle));
      auto channel = middle.done(), last = below.back().ctx.done();
      auto second = weft::spawn([&, &middle = middle, &cancel = cancel_middle] {
        while (round % 2 == 0 ? !middle.err() : channel.try_recv() != weft::recv_result::closed) weft::yield();
        cancel();
        wrong += last.try_recv() != weft::recv_result::closed;  // first: the checks that follow wait for the lock
        for (auto& c : below) wrong += !canceled(c.ctx);
        wrong += channel.try_recv() != weft::recv_result::closed;
        below.back().cancel();
        wrong += below.back().ctx.done().try_recv() != weft::recv_result::closed;
        weft::cancellable late = weft::with_cancel(middle);
        wrong += !canceled(late.ctx);
      });
      weft::yield();
      cancel_top();
      second.join();
    }
  });
  REQUIRE(wrong.load() == 0);
}

TEST_CASE("context: when done() is closed, all below is cancelled") {
  std::atomic<int> wrong{0};
  weft::run([&] {
    for (int round = 0; round < 200; ++round) {
      weft::cancellable top =
          round % 2 == 0 ? weft::with_cancel(weft::background()) : weft::with_timeout(weft::background(), 100us);
      weft::cancellable below = weft::with_cancel(top.ctx);
      auto other = weft::spawn([&] {
        weft::sleep(50us);
        if (round % 2 == 0) top.cancel();
      });
      top.ctx.done().recv();
      wrong += !below.ctx.err();
      other.join();
    }
  });
  REQUIRE(wrong.load() == 0);
}

TEST_CASE("context: a stop_token's deadline that comes after the run()") {
  std::unique_ptr<weft::cancellable> c;
  weft::run([&] { c.reset(new weft::cancellable(weft::with_timeout(weft::background(), 1ms))); });
  std::this_thread::sleep_for(5ms);
  CHECK(c->ctx.stop_token().stop_requested());
}

// The stop callback is called once the channel is closed, and holds the cancel() up in the midst.
TEST_CASE("context: a cancel() after the deadline and the run(), and the thread that it wakes destroys everything") {
  for (auto limit = 20ms;; limit *= 5) {
    std::unique_ptr<weft::cancellable> c;
    weft::recv_chan<void> done(weft::nil);
    std::stop_token stop;
    weft::run([&] {
      c.reset(new weft::cancellable(weft::with_timeout(weft::background(), limit)));
      done = c->ctx.done();
      stop = c->ctx.stop_token();
    });
    if (stop.stop_requested()) continue;  // the run() took longer
    std::atomic<bool> destroyed{false};
    std::stop_callback hold_up(stop, [&] {
      while (!destroyed) std::this_thread::yield();
    });
    const weft::cancel_function& cancel = c->cancel;
    std::thread woken([&] {
      done.recv();
      c.reset();
      destroyed = true;
    });
    std::this_thread::sleep_for(limit);
    cancel();
    woken.join();
    CHECK(stop.stop_requested());
    return;
  }
}

TEST_CASE("context: a channel's send and receive that are not cancelled") {
  bool sent_to_closed = true;
  std::vector<int> got;
  weft::run([&] {
    auto c = weft::with_cancel(weft::background());
    weft::chan<int> buffered(1), handed;
    buffered.send(1, c.ctx);
    got.push_back(*buffered.recv(c.ctx));
    weft::task<void> sender = weft::spawn([&] { handed.send(2, c.ctx); });
    got.push_back(*handed.recv(c.ctx));
    sender.join();
    buffered.send(3, c.ctx);
    buffered.close();
    got.push_back(*buffered.recv(c.ctx));
    got.push_back(buffered.recv(c.ctx) ? -1 : 4);
    try {
      buffered.send(5, c.ctx);
    } catch (const weft::channel_closed&) {
      sent_to_closed = false;
    }
  });
  CHECK(got == std::vector<int>{1, 2, 3, 4});
  CHECK_FALSE(sent_to_closed);
}
