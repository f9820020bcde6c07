// What the demos share: their arguments, the loop that accepts connections, and the clean stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <weft/context.hpp>
#include <weft/net.hpp>

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

// The two stages of a stop.
struct stop_stages {
  weft::context asked;  // cancelled by the first signal: finish what was begun, begin nothing new
  weft::context over;   // cancelled when the grace has passed, or by a second signal: give up
};

// Serves one connection; when it returns or throws, the connection is closed. A std::system_error (the peer is gone, a
// deadline has passed) ends the connection and nothing else.
using connection_handler = std::function<void(weft::net::tcp_stream&, const stop_stages&)>;

// Listens, says where, and runs `handler` in a goroutine for each connection, until SIGINT or SIGTERM. Then it closes
// the listener; reads fail from then on, so connections that wait for their peer end; the others get the grace to
// finish, and after it they are closed, too. When this returns no goroutine of it is left. Returns the exit code: 0, or
// 1 if it could not listen.
int serve(const char* name, const server_options& o, const connection_handler& handler);

}  // namespace demo
