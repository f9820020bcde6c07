// The report says of each goroutine what it waits for. Here only main is left.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::spawn([] {}).join();
    weft::chan<int> c;
    c.recv();
  });
}
