// The open connections of a server, so that a stop reaches the goroutines that wait on them.
#pragma once

#include <weft/net.hpp>
#include <weft/sync.hpp>

#include <mutex>
#include <unordered_set>

namespace demo {

class connections {
 public:
  // A connection is in the set as long as its entry lives.
  class entry {
   public:
    entry(connections& set, weft::net::tcp_stream& s);
    ~entry();
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

   private:
    connections& set_;
    weft::net::tcp_stream& stream_;
  };

  // From now on reads fail, including those that wait at this moment and those of connections still to come.
  void stop_reading();

  // Closes all connections, including those still to come, so that everything on them fails.
  void close_all();

 private:
  enum class stage { open, no_reading, closed };
  static void apply(stage now, weft::net::tcp_stream& s);
  void advance(stage to);

  weft::mutex lock_;
  stage stage_ = stage::open;
  std::unordered_set<weft::net::tcp_stream*> streams_;
};

}  // namespace demo
