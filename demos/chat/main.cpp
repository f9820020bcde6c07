// weft-chat: a chat for nc and telnet.
#include <chrono>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

#include "../support/server.hpp"
#include "client.hpp"
#include "hub.hpp"

int main(int argc, char** argv) try {
  namespace chat = demo::chat;

  demo::server_options options{.port = 7001};
  std::size_t queue = 256;
  std::chrono::milliseconds idle_limit{600'000};

  CLI::App app{"A chat for nc and telnet: rooms, names, one line is one message.", "weft-chat"};
  demo::add_server_options(app, options);
  app.add_option("--queue", queue, "Lines that may wait for a client before it is dropped")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  demo::add_seconds(app, "--idle", idle_limit, "Seconds a client may be silent");
  CLI11_PARSE(app, argc, argv);

  return weft::run(
      [&] {
        demo::server server("weft-chat", options);
        const weft::chan<chat::event> inbox(64);
        // A wait_group and not a task, which would keep an exception until somebody waits for it: if the hub throws,
        // the program should end at once.
        weft::wait_group hub;
        hub.go({.name = "hub"}, [&] { chat::hub(inbox, server.stop().asked, idle_limit).run(); });

        server.serve(
            [&](weft::net::tcp_stream& peer, const demo::stop_stages&) { chat::serve_client(peer, inbox, queue); });
        inbox.close();  // this ends the hub
        hub.wait();
      },
      {.procs = options.procs});
} catch (const std::exception& e) {
  std::fprintf(stderr, "weft-chat: %s\n", e.what());
  return 1;
}
