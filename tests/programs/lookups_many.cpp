// Many names are looked up at once, with a slow resolver: only a limited number of threads wait for it. Look-ups that
// nobody waits for any more are not made.
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <netdb.h>
#include <netinet/in.h>
#include <system_error>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

namespace {

std::atomic<int> calls{0}, now{0}, most{0};

}  // namespace

// Replaces the C library's.
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo** found) {
  ++calls;
  int n = ++now;
  for (int m = most; m < n && !most.compare_exchange_weak(m, n);) {}
  ::usleep(50'000);
  --now;
  struct answer {
    addrinfo info;
    sockaddr_in address;
  };
  auto* a = static_cast<answer*>(std::calloc(1, sizeof(answer)));
  a->address.sin_family = AF_INET;
  a->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a->info.ai_family = AF_INET;
  a->info.ai_addr = reinterpret_cast<sockaddr*>(&a->address);
  a->info.ai_addrlen = sizeof a->address;
  *found = &a->info;
  return 0;
}

extern "C" void freeaddrinfo(addrinfo* a) { std::free(a); }

int main() {
  constexpr int n = 400;
  std::atomic<int> found{0}, late{0};
  int made = 0;
  weft::run([&] {
    weft::task_group all;
    for (int i = 0; i < n; ++i) all.go([&] { found += !weft::net::resolve("example.org", "80").empty(); });
    all.wait();
    made = calls.exchange(0);
    for (int i = 0; i < n; ++i) {
      all.go([&] {
        std::error_code ec;
        weft::net::tcp_stream::connect("example.org:1", 1ms, ec);
        late += ec == std::errc::timed_out;
      });
    }
    all.wait();
    while (now != 0) weft::sleep(10ms);
    weft::sleep(200ms);
  });
  std::fprintf(stderr, "%d found by %d calls, %d at once; %d too late, by %d calls\n", found.load(), made, most.load(),
               late.load(), calls.load());
  return found == n && made == n && most <= 100 && late == n && calls < n ? 0 : 1;
}
