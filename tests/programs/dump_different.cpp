// More goroutines with different traces than a dump can remember places: each must be shown where it waits.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <weft/weft.hpp>

constexpr int n = 700;

template <int i>
[[gnu::noinline]] void waits(const weft::chan<int>& c) {
  c.recv();
  asm volatile("");  // no tail call
}

template <int... i>
void start_all(const weft::chan<int>& c, std::integer_sequence<int, i...>) {
  (weft::go([c] { waits<i>(c); }), ...);
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::chan<int> c;
    start_all(c, std::make_integer_sequence<int, n>());
    while (weft::runtime_stats().waiting < n) weft::sleep(1ms);
    std::FILE* file = std::tmpfile();
    weft::dump_goroutines(file);
    std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    if (std::fread(text.data(), 1, text.size(), file) != text.size()) return;
    std::fclose(file);
    int shown = 0;
    for (int i = 0; i < n; ++i) shown += count(text, "    void waits<" + std::to_string(i) + ">(") == 1;
    std::fprintf(stderr, "%d of %d, and %d were started by somebody\n", shown, n, count(text, "    started by ") - 1);
  });
}
