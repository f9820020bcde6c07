// weft-http: a small web server.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

#include "../support/server.hpp"
#include "connection.hpp"
#include "site.hpp"

int main(int argc, char** argv) try {
  namespace http = demo::http;

  demo::server_options options{.port = 8080};
  http::settings settings;
  std::string root;

  CLI::App app{"A small web server: /, /json, /sleep?ms=N, /stats, and files.", "weft-http"};
  demo::add_server_options(app, options);
  app.add_option("--root", root, "Folder whose files are served");
  demo::add_seconds(app, "--request-timeout", settings.request_timeout, "Seconds a request may take to come in");
  demo::add_seconds(app, "--idle-timeout", settings.idle_timeout, "Seconds a connection may be without a request");
  demo::add_seconds(app, "--write-timeout", settings.write_timeout, "Seconds a client may take to accept a write");
  app.add_option("--max-head", settings.size.head, "Largest head of a request, in bytes")
      ->capture_default_str()
      ->check(CLI::Range(256, static_cast<int>(http::connection::buffer_size) - 1));
  app.add_option("--max-body", settings.size.body, "Largest body of a request, in bytes")
      ->capture_default_str()
      // The range is one of signed numbers: as an unsigned one, "-1" would be a large number and be accepted.
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  CLI11_PARSE(app, argc, argv);

  std::optional<http::file_root> files;
  if (!root.empty()) files.emplace(root);
  const http::site site(std::move(files));
  const http::router answer = [&](const auto& request, auto& out, const auto& stop) {
    site.answer(request, out, stop);
  };

  return weft::run(
      [&] {
        demo::server("weft-http", options).serve([&](weft::net::tcp_stream& peer, const demo::stop_stages& stop) {
          http::connection(peer, settings, answer, stop).serve();
        });
      },
      {.procs = options.procs});
} catch (const std::exception& e) {
  std::fprintf(stderr, "weft-http: %s\n", e.what());
  return 1;
}
