// Each goroutine starts ten more, down to 1,000,000 leaves, and sends up the sum of what those ten send.
#include <cstdint>
#include <cstdio>
#include <weft/weft.hpp>

namespace {

constexpr std::int64_t leaves = 1'000'000;

void skynet(weft::chan<std::int64_t> up, std::int64_t first, std::int64_t size) {
  if (size == 1) {
    up.send(first);
    return;
  }
  weft::chan<std::int64_t> sums;
  for (std::int64_t i = 0; i < 10; ++i) weft::go(skynet, sums, first + i * (size / 10), size / 10);
  std::int64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += sums.recv().value();
  up.send(sum);
}

}  // namespace

int main() {
  return weft::run([] {
    weft::chan<std::int64_t> result;
    weft::go(skynet, result, 0, leaves);
    std::int64_t sum = result.recv().value();
    std::printf("skynet: %lld\n", static_cast<long long>(sum));
    return sum == leaves * (leaves - 1) / 2 ? 0 : 1;
  });
}
