// weft-echo: sends every byte back.
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>

#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

#include "../support/server.hpp"

namespace {

// Runs in a goroutine for each connection. read() and write() look as if they block, but they park only this goroutine.
void echo(weft::net::tcp_stream& peer, const demo::stop_stages&) {
  std::array<char, 4096> buffer;
  while (std::size_t n = peer.read(buffer)) peer.write(std::span(buffer).first(n));
}

}  // namespace

int main(int argc, char** argv) try {
  demo::server_options options{.port = 7000};
  CLI::App app{"Sends every byte back.", "weft-echo"};
  demo::add_server_options(app, options);
  CLI11_PARSE(app, argc, argv);

  return weft::run([&] { demo::server("weft-echo", options).serve(echo); }, {.procs = options.procs});
} catch (const std::exception& e) {
  std::fprintf(stderr, "weft-echo: %s\n", e.what());
  return 1;
}
