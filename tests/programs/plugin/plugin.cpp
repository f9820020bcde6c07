#include "plugin.hpp"

#include <weft/weft.hpp>

namespace {

weft::local<int> counter;

int sum(int n) {
  using namespace std::chrono_literals;
  weft::chan<int> numbers{4};
  weft::wait_group senders;
  for (int i = 0; i < n; ++i) {
    senders.go([=] {
      *counter = i;
      weft::sleep(std::chrono::microseconds(i % 100));
      numbers.send(*counter);
    });
  }
  weft::task<void> closer = weft::spawn([&] {
    senders.wait();
    numbers.close();
  });
  int total = 0;
  bool open = true;
  while (open) {
    weft::select(weft::on_recv(numbers,
                               [&](std::optional<int> v) {
                                 open = v.has_value();
                                 total += v.value_or(0);
                               }),
                 weft::on_timeout(10s, [] { std::exit(93); }));
  }
  try {
    weft::spawn([] { throw std::out_of_range("thrown in a plugin"); }).join();
  } catch (const std::out_of_range&) {
    return total;
  }
  return -1;
}

int run_sum(int n) {
  return weft::run([=] { return sum(n); });
}

bool waits() {
  int v;
  return weft::chan<int>().recv_for(v, std::chrono::milliseconds(1)) == weft::recv_result::value;
}

void start() {
  weft::go([] {});
}

constexpr plugin_calls calls{sum, run_sum, waits, start};

}  // namespace

extern "C" __attribute__((visibility("default"))) const plugin_calls* plugin_entry() { return &calls; }
