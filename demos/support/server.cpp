#include "server.hpp"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

namespace demo {

using namespace std::chrono_literals;

namespace {

// Checks of arguments. Each returns what is wrong with its argument, or an empty text if nothing is.
std::string check_host(const std::string& text) {
  return text.empty() ? "the address must not be empty; 0.0.0.0 and :: stand for all addresses" : "";
}

std::string check_seconds(const std::string& text) {
  double s = 0;
  const bool good = CLI::detail::lexical_cast(text, s) && s >= 0 && s <= 1e9;  // CLI::Range would accept NaN
  return good ? "" : '"' + text + "\" is not a number of seconds from 0 to 1000000000";
}

}  // namespace

void add_server_options(CLI::App& app, server_options& o) {
  app.add_option("--host", o.host, "Address to listen on")->capture_default_str()->check(check_host);
  app.add_option("--port", o.port, "Port to listen on; 0 picks a free one")->capture_default_str();
  app.add_option("--procs", o.procs, "Goroutines that run at once; 0: one for each processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  add_seconds(app, "--grace", o.grace, "Seconds that connections get to finish when the server stops");
}

void add_seconds(CLI::App& app, const char* name, std::chrono::milliseconds& value, const char* help) {
  const auto set = [&value](double s) { value = std::chrono::milliseconds(std::llround(s * 1000)); };
  app.add_option_function<double>(name, set, help)
      ->default_str(CLI::detail::to_string(static_cast<double>(value.count()) / 1000))
      ->check(check_seconds);
}

namespace {

// Each connection takes a descriptor, and the usual soft limit of 1024 is too low for a server.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

weft::net::tcp_listener listen(const server_options& o) {
  const bool v6 = o.host.find(':') != std::string::npos;
  const std::string address = (v6 ? '[' + o.host + ']' : o.host) + ':' + std::to_string(o.port);
  std::error_code ec;
  auto l = weft::net::tcp_listener::bind(address, ec);
  if (ec) throw std::system_error(ec, "cannot listen on " + address);
  return l;
}

}  // namespace

server::server(std::string name, const server_options& o)
    : name_(std::move(name)),
      grace_(o.grace),
      // The channel exists before anybody learns the address, so that no signal can come too early for it.
      signals_(weft::io::signal_channel({SIGINT, SIGTERM})),
      listener_(listen(o)) {
  raise_descriptor_limit();
  std::printf("%s: listening on %s\n", name_.c_str(), to_string(listener_.local_endpoint()).c_str());
  std::fflush(stdout);
}

server::~server() { weft::io::stop_signals(signals_); }

void server::serve(const connection_handler& handler) {
  weft::task<void> acceptor = weft::spawn({.name = "accept"}, [&] { accept_all(handler); });

  signals_.recv();
  asked_.cancel();
  listener_.close();
  acceptor.join();
  open_.stop_reading();

  const weft::chan<void> all_gone;
  weft::go([this, all_gone] {
    serving_.wait();
    all_gone.close();
  });
  weft::select(weft::on_recv(all_gone), weft::on_timeout(grace_), weft::on_recv(signals_));
  over_.cancel();
  open_.close_all();
  all_gone.recv();
}

void server::accept_all(const connection_handler& handler) {
  while (true) {
    std::error_code ec;
    try {
      weft::net::tcp_stream s = listener_.accept(ec);
      if (stop_.asked.err()) return;
      if (!ec) {
        serving_.go({.name = "connection"}, [this, &handler, s = std::move(s)]() mutable { serve_one(s, handler); });
        continue;
      }
    } catch (const std::bad_alloc&) {
      ec = std::make_error_code(std::errc::not_enough_memory);
    }
    std::fprintf(stderr, "%s: accept: %s\n", name_.c_str(), ec.message().c_str());
    weft::sleep(100ms);
  }
}

void server::serve_one(weft::net::tcp_stream& s, const connection_handler& handler) {
  const connections::entry entry(open_, s);
  try {
    handler(s, stop_);
  } catch (const std::system_error&) {
    // The peer is gone, or too slow, or we are stopping. All of this is normal.
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: connection dropped: %s\n", name_.c_str(), e.what());
  }
}

}  // namespace demo
