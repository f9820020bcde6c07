// Whoever wakes the only goroutine is a thread that lives just for that, and others end at that moment: the check must
// not miss the one that is still to come.
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
