// Reading on where TCP's urgent data lies. The kernel says there that nothing can be read if a signal is pending at
// that moment; this test replaces the call that reads, and says so itself.

#include "tests/support/catch.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>

using namespace std::chrono_literals;

namespace {

std::atomic<int> attempts{0}, refusals{0};

}  // namespace

// weft::net::sys::recv
extern "C" ssize_t __real__ZN4weft3net3sys4recvEiPvm(int fd, void* data, std::size_t size) noexcept;
extern "C" ssize_t __wrap__ZN4weft3net3sys4recvEiPvm(int fd, void* data, std::size_t size) noexcept {
  const ssize_t n = refusals > 0 && refusals-- > 0 ? -EAGAIN : __real__ZN4weft3net3sys4recvEiPvm(fd, data, size);
  ++attempts;
  return n;
}

TEST_CASE("net: bytes behind urgent data are read, although a signal came") {
  weft::run([] {
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto sender = weft::net::tcp_stream::connect(listener.local_endpoint());
    auto receiver = listener.accept();
    auto reads = weft::spawn([&] {
      receiver.set_read_deadline(std::chrono::steady_clock::now() + 5s);
      char got[16];
      const std::size_t n = receiver.read(got);
      return std::string_view(got, n) == "BCD";
    });
    while (attempts != 1) weft::sleep(1ms);  // it waits
    REQUIRE(::send(sender.native_handle(), "x", 1, MSG_OOB) == 1);
    while (attempts != 2) weft::sleep(1ms);  // it was woken, and waits again
    refusals = 1;
    sender.write(std::string_view("BCD"));
    CHECK(reads.join());
    CHECK(refusals == 0);
  });
}
