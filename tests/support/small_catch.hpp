// The part of Catch2 that is needed by the tests which tests/matrix/run compiles in many builds. Compiling Catch2
// itself would take most of the time, and it cannot be had for every standard library. This header also defines main().
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

namespace small_catch {

struct test_case {
  const char* name;
  void (*run)();
};

inline std::vector<test_case> all;
inline bool failed = false;

struct registration {
  registration(const char* name, void (*run)()) { all.push_back({name, run}); }
};

struct stop {};

inline bool check(bool ok, const char* what, const char* file, int line) {
  if (ok) return true;
  failed = true;
  std::fprintf(stderr, "%s:%d: FAILED: %s\n", file, line, what);
  return false;
}

// Returns the message of what f throws: "" if f throws nothing, "?" if the exception has no message.
template <class F>
std::string message_of(F f) {
  try {
    f();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "?";
  }
}

template <class E, class F>
bool throws(F f) {
  try {
    f();
  } catch (const E&) {
    return true;
  } catch (...) {}
  return false;
}

}  // namespace small_catch

#define SMALL_CATCH_JOIN2(a, b) a##b
#define SMALL_CATCH_JOIN(a, b) SMALL_CATCH_JOIN2(a, b)
#define SMALL_CATCH_TEST(f, name)                                                     \
  static void f();                                                                    \
  static const small_catch::registration SMALL_CATCH_JOIN(f, _registration){name, f}; \
  static void f()
#define TEST_CASE(name) SMALL_CATCH_TEST(SMALL_CATCH_JOIN(test_case_, __LINE__), name)
#define CHECK(...) small_catch::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define REQUIRE(...)                                    \
  do {                                                  \
    if (!CHECK(__VA_ARGS__)) throw small_catch::stop(); \
  } while (false)
#define FAIL(text) (small_catch::check(false, text, __FILE__, __LINE__), throw small_catch::stop())
#define CHECK_THROWS_AS(expression, type) CHECK(small_catch::throws<type>([&] { (void)(expression); }))
#define CHECK_THROWS_WITH(expression, text) CHECK(small_catch::message_of([&] { (void)(expression); }) == (text))

int main() {
  int bad = 0;
  for (const small_catch::test_case& t : small_catch::all) {
    small_catch::failed = false;
    try {
      t.run();
    } catch (...) {
      small_catch::failed = true;
    }
    if (small_catch::failed) std::fprintf(stderr, "FAILED: %s\n", t.name);
    bad += small_catch::failed;
  }
  std::printf("%zu test cases, %d failed\n", small_catch::all.size(), bad);
  return bad != 0;
}
