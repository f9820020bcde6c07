// Two goroutines pass a number to and fro over unbuffered channels.
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    constexpr int rounds = 100'000;
    weft::chan<int> ping, pong;
    weft::task<void> other = weft::spawn([ping, pong] {
      for (int v : ping) pong.send(v + 1);
      pong.close();
    });

    int v = 0;
    for (int i = 0; i < rounds; ++i) {
      ping.send(v);
      v = pong.recv().value();
    }
    ping.close();
    bool closed = !pong.recv();
    other.join();
    std::printf("pingpong: %d of %d\n", v, rounds);
    return v == rounds && closed ? 0 : 1;
  });
}
