// A little of everything, in which sanitizers and Valgrind must find no error. With the name of a fault as its
// argument, the program commits that fault, which they must find.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#if defined(TELLS_TSAN_NOTHING)
// In place of TSan's: TSan does not learn of weft's switches.
extern "C" __attribute__((visibility("default"))) void __tsan_switch_to_fiber(void*, unsigned) {}
#endif

namespace {

using namespace std::chrono_literals;

// Keeps many calls open at once, more than TSan allows a thread: TSan must count them for each goroutine by itself.
__attribute__((noinline)) int descend(int depth, const weft::chan<void>& go_on) {
  if (depth == 0) {
    go_on.recv();
    return 0;
  }
  return descend(depth - 1, go_on) + 1;
}

int many_open_calls() {
  weft::chan<void> go_on;
  std::vector<weft::task<int>> tasks;
  for (int i = 0; i < 150; ++i) tasks.push_back(weft::spawn([=] { return descend(700, go_on); }));
  while (weft::runtime_stats().waiting < tasks.size()) weft::sleep(1ms);
  go_on.close();
  int calls = 0;
  for (auto& t : tasks) calls += t.join();
  return calls;
}

int everything() {
  if (many_open_calls() != 150 * 700) return 2;

  weft::chan<std::unique_ptr<std::string>> lines{4};
  weft::mutex mutex;
  std::size_t plain = 0;  // guarded by mutex; seen by the others after wait()
  weft::task_group group;
  for (int i = 0; i < 50; ++i) {
    group.go([=] { lines.send(std::make_unique<std::string>(100, 'x')); });
    group.go([&] {
      auto line = lines.recv();
      std::scoped_lock hold(mutex);
      plain += (*line)->size();
    });
  }
  group.wait();

  std::vector<int> written(64);
  weft::chan<void> done;
  weft::go([&, done] {
    for (int& w : written) {
      w = 1;
      weft::yield();
    }
    done.close();
  });
  done.recv();
  for (int w : written) plain += static_cast<std::size_t>(w);

  for (int i = 0; i < 20; ++i) {
    try {
      weft::spawn([i] {
        weft::sleep(std::chrono::microseconds(i));
        throw std::runtime_error(std::string(200, 'e'));
      }).join();
    } catch (const std::runtime_error& e) {
      weft::yield();  // switches while the exception is caught
      plain += std::string(e.what()).size();
    }
  }

  auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
  weft::task<void> server = weft::spawn([&] {
    auto s = l.accept();
    std::vector<char> b(100);
    s.read_exactly(b);
    s.write(b);
  });
  auto c = weft::net::tcp_stream::connect(l.local_endpoint());
  c.write(std::string(100, 'n'));
  std::vector<char> b(100);
  c.read_exactly(b);
  plain += b.size();
  server.join();

  weft::chan<int> late;
  weft::func_timer t = weft::after_func(1ms, [late] { late.send(1); });
  weft::select(weft::on_recv(late, [&](int n) { plain += static_cast<std::size_t>(n); }),
               weft::on_timeout(10s, [] { std::abort(); }));
  std::printf("everything: %zu\n", plain);
  return plain == 50 * 100 + 64 + 20 * 200 + 100 + 1 ? 0 : 1;
}

int* escaped;

__attribute__((noinline)) void returns_its_local() {
  int local[16] = {};
  escaped = &local[3];
  weft::yield();  // ASan's fake stack must survive the switch
  asm volatile("" : : "r"(escaped) : "memory");
}

int fault(const std::string& which) {
  return weft::spawn([=] {
           if (which == "stack-use-after-return") {
             returns_its_local();
             return *escaped;
           }
           if (which == "stack-buffer-overflow") {
             int local[4] = {};
             int* volatile past = local + 4;
             weft::yield();
             return *past;
           }
           if (which == "detected memory leaks") {
             auto* leaked = new std::string(1000, 'l');
             asm volatile("" : : "r"(leaked) : "memory");
             return 0;
           }
           if (which == "Invalid read") {
             auto gone = std::make_unique<int>(1);
             escaped = gone.get();
             gone.reset();
             weft::yield();
             return *escaped;
           }
           if (which == "data race") {
             int shared = 0;
             std::atomic<int> running{0};
             weft::wait_group both;
             for (int i = 0; i < 2; ++i) {
               both.go([&] {
                 // Both run at once on two threads, and nothing orders their accesses.
                 weft::no_preemption alone;
                 running.fetch_add(1, std::memory_order_relaxed);
                 while (running.load(std::memory_order_relaxed) != 2) {}
                 for (int k = 0; k < 1000; ++k) ++shared;
               });
             }
             both.wait();
             return 0;
           }
           std::fprintf(stderr, "no such fault: %s\n", which.c_str());
           return 0;
         })
      .join();
}

}  // namespace

int main(int argc, char** argv) {
  return weft::run([&] { return argc > 1 ? fault(argv[1]) : everything(); });
}
