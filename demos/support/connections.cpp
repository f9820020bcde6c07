#include "connections.hpp"

#include <chrono>

namespace demo {

connections::entry::entry(connections& set, weft::net::tcp_stream& s) : set_(set), stream_(s) {
  std::scoped_lock held(set_.lock_);
  set_.streams_.insert(&stream_);
  apply(set_.stage_, stream_);
}

connections::entry::~entry() {
  std::scoped_lock held(set_.lock_);
  set_.streams_.erase(&stream_);
}

void connections::stop_reading() { advance(stage::no_reading); }
void connections::close_all() { advance(stage::closed); }

void connections::advance(stage to) {
  std::scoped_lock held(lock_);
  stage_ = to;
  for (weft::net::tcp_stream* s : streams_) apply(to, *s);
}

void connections::apply(stage now, weft::net::tcp_stream& s) {
  std::error_code ignored;  // the owner may have closed it
  switch (now) {
    case stage::open: break;
    case stage::no_reading: s.set_read_deadline(std::chrono::steady_clock::now(), ignored); break;
    case stage::closed: s.close(ignored); break;
  }
}

}  // namespace demo
