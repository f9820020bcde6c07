// A task that nobody can join any more, and one whose exception was there before detach().
#include <cstring>
#include <stdexcept>
#include <weft/weft.hpp>

int main(int argc, char** argv) {
  bool before = argc > 1 && std::strcmp(argv[1], "before") == 0;
  return weft::run([=] {
    weft::chan<void> go_on;
    auto t = weft::spawn([=] {
      if (!before) go_on.recv();
      throw std::runtime_error("in a detached task");
    });
    if (before) t.wait();
    t.detach();
    go_on.close();
    weft::chan<int>().recv();
  });
}
