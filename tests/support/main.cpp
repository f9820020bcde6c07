// The main() of every Catch2 test. It runs the session on a plain thread: a test that needs goroutines calls
// weft::run itself.
//
// After each test case, no thread may be left that did not exist before it. A test case that leaves threads behind on
// purpose has the tag [leaves-threads].
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using listener_base = Catch::EventListenerBase;
#define TEST_INFO(stats) (*(stats).testInfo)
#define TAG_TEXT(tag) std::string(static_cast<Catch::StringRef>((tag).original))
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using listener_base = Catch::TestEventListenerBase;
#define TEST_INFO(stats) ((stats).testInfo)
#define TAG_TEXT(tag) (tag)
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

constexpr auto grace = 2s;

int leaks_found = 0;

std::size_t count_threads() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator()));
}

void report_leak(const std::string& test_case, std::size_t count) {
  std::fflush(stdout);
  std::fprintf(stderr, "LEAK: test case \"%s\" left %zu threads behind\n", test_case.c_str(), count);
  ++leaks_found;
}

class leak_check : public listener_base {
 public:
  using listener_base::listener_base;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    listener_base::testCaseStarting(info);
    threads_before_ = count_threads();
    leaves_threads_ = std::any_of(info.tags.begin(), info.tags.end(),
                                  [](const auto& tag) { return TAG_TEXT(tag) == "leaves-threads"; });
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const std::string& name = TEST_INFO(stats).name;
    auto limit = std::chrono::steady_clock::now() + grace;
    while (std::chrono::steady_clock::now() < limit && extra_threads() != 0) std::this_thread::sleep_for(1ms);
    if (std::size_t n = extra_threads()) report_leak(name, n);
    listener_base::testCaseEnded(stats);
  }

 private:
  std::size_t extra_threads() const {
    if (leaves_threads_) return 0;
    std::size_t now = count_threads();
    return now > threads_before_ ? now - threads_before_ : 0;
  }

  std::size_t threads_before_ = 0;
  bool leaves_threads_ = false;
};

CATCH_REGISTER_LISTENER(leak_check)

}  // namespace

int main(int argc, char** argv) {
  // A sanitizer starts a thread of its own along with the program's first one. It must not count as a leak.
  std::thread([] {}).join();

  int failed = Catch::Session().run(argc, argv);
  if (leaks_found > 0) std::fprintf(stderr, "%d leaks\n", leaks_found);
  return failed != 0 || leaks_found > 0 ? 1 : 0;  // to meson, other codes mean something else, such as 77
}
