// The first program of README.md. A whole program, so that it can be copied; examples_test.cpp includes it and runs it.

// [program]
#include <cstdio>
#include <stdexcept>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  return weft::run([] {
    weft::chan<int> squares;
    for (int i = 1; i <= 10; ++i) {
      weft::go([=] {           // the lambda has its own handle of the channel
        weft::sleep(i * 1ms);  // work that waits; the thread runs others meanwhile
        squares.send(i * i);
      });
    }

    int sum = 0;
    for (int received = 0; received < 10; ++received) {
      auto chosen = weft::select(weft::on_recv(squares, [&](int square) { sum += square; }), weft::on_timeout(5s));
      if (chosen == 1) throw std::runtime_error("a square is late");  // comes out of run()
    }
    std::printf("the squares of 1 to 10 sum up to %d\n", sum);
    return sum == 385 ? 0 : 1;
  });
}
// [/program]
