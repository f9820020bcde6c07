// A thread that lives just for that wakes the only goroutine, while another thread ends at that moment. The deadlock
// check must not miss the thread that is still to come.
#include <memory>
#include <thread>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    for (int i = 0; i < 5000; ++i) {
      auto woken = std::make_shared<weft::event>();
      std::thread([] {}).detach();
      std::thread([=] { woken->set(); }).detach();
      woken->wait();
    }
  });
}
