// Two local<T>s whose destructors use each other.
#include <weft/weft.hpp>

struct counters {
  int lines = 0;
  ~counters();
};
struct log_buffer {
  ~log_buffer();
  int written = 0;
};
weft::local<counters> counts;
weft::local<log_buffer> messages;

counters::~counters() { ++messages->written; }
log_buffer::~log_buffer() { ++counts->lines; }

int main() {
  return weft::run([] { weft::spawn([] { ++counts->lines; }).join(); });
}
