// Every goroutine waits for another one.
#include <memory>
#include <mutex>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::chan<int> c;
    auto m = std::make_shared<weft::mutex>();
    m->lock();
    weft::go({.name = "locker"}, [=] { std::lock_guard hold(*m); });
    weft::go({.name = "chooser"},
             [=] { weft::select(weft::on_recv(c), weft::on_send(weft::chan<int>(weft::nil), 1)); });
    weft::go({.name = "nobody"}, [] { weft::select(); });
    weft::yield();
    c.recv();
  });
}
