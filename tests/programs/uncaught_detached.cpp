// The exception of a task that nobody can join any more.
#include <stdexcept>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::chan<void> go_on;
    auto t = weft::spawn([=] {
      go_on.recv();
      throw std::runtime_error("in a detached task");
    });
    t.detach();
    go_on.close();
    weft::chan<int>().recv();
  });
}
