// What the demos share: their arguments, the loop that accepts connections, and the clean stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/net.hpp>
#include <weft/sync.hpp>

#include "connections.hpp"

namespace CLI {
class App;
}

namespace demo {

struct server_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  unsigned procs = 0;
  std::chrono::milliseconds grace{5000};
};

// Adds --host, --port, --procs and --grace to the command line.
void add_server_options(CLI::App& app, server_options& o);

// Adds an option that takes a number of seconds, such as 10 or 0.5. The default is the present `value`.
void add_seconds(CLI::App& app, const char* name, std::chrono::milliseconds& value, const char* help);

// The two stages of a stop.
struct stop_stages {
  weft::context asked;  // cancelled by the first signal: finish what has begun, begin nothing new
  weft::context over;   // cancelled when the grace period is over, or by a second signal: give up
};

// Serves one connection, which is closed when the handler returns or throws. A std::system_error (the peer is gone, a
// deadline has passed) ends the connection and nothing else.
using connection_handler = std::function<void(weft::net::tcp_stream&, const stop_stages&)>;

class server {
 public:
  // Starts to listen, and prints the address. `name` appears in messages. Throws std::system_error. Goroutine only, as
  // are all functions of this class.
  server(std::string name, const server_options& o);
  ~server();

  const stop_stages& stop() const { return stop_; }

  // Runs `handler` in a goroutine for each connection, until SIGINT or SIGTERM. Then it closes the listener and makes
  // reads fail, so connections that wait for their peer end. The others get the grace period to finish, after which
  // they are closed. When serve() returns, no connection is left.
  void serve(const connection_handler& handler);

 private:
  void accept_all(const connection_handler& handler);
  void serve_one(weft::net::tcp_stream& s, const connection_handler& handler);

  std::string name_;
  std::chrono::milliseconds grace_;
  weft::chan<int> signals_;
  weft::net::tcp_listener listener_;
  weft::cancellable over_ = weft::with_cancel(weft::background());
  weft::cancellable asked_ = weft::with_cancel(over_.ctx);
  stop_stages stop_{asked_.ctx, over_.ctx};
  connections open_;
  weft::wait_group serving_;
};

}  // namespace demo
