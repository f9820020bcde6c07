#include "server.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

#include "connections.hpp"

namespace demo {

using namespace std::chrono_literals;

void add_server_options(CLI::App& app, server_options& o) {
  app.add_option("--host", o.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", o.port, "Port to listen on; 0 picks a free one")->capture_default_str();
  app.add_option("--procs", o.procs, "Goroutines that run at once; 0: one for each processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option_function<unsigned>(
         "--grace", [&o](unsigned s) { o.grace = std::chrono::seconds(s); },
         "Seconds that connections get to finish when the server stops")
      ->default_str("5");
}

namespace {

// A connection is a descriptor, and the default limit of 1024 is from another age.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string address(const server_options& o) {
  bool v6 = o.host.find(':') != std::string::npos;
  return (v6 ? '[' + o.host + ']' : o.host) + ':' + std::to_string(o.port);
}

class server {
 public:
  server(const char* name, const server_options& o, const connection_handler& handler)
      : name_(name), grace_(o.grace), handler_(handler), listener_(weft::net::tcp_listener::bind(address(o))) {}

  void run() {
    // Asked for before anybody knows the address, so that no signal finds us without it.
    weft::chan<int> signals = weft::io::signal_channel({SIGINT, SIGTERM});
    std::printf("%s: listening on %s\n", name_, to_string(listener_.local_endpoint()).c_str());
    std::fflush(stdout);

    auto over = weft::with_cancel(weft::background());
    auto asked = weft::with_cancel(over.ctx);
    const stop_stages stop{asked.ctx, over.ctx};
    weft::task<void> acceptor = weft::spawn([&] { accept_all(stop); });

    signals.recv();
    asked.cancel();
    listener_.close();
    acceptor.join();
    open_.stop_reading();

    weft::chan<void> all_done;
    weft::go([this, all_done] {
      serving_.wait();
      all_done.close();
    });
    weft::select(weft::on_recv(all_done), weft::on_timeout(grace_), weft::on_recv(signals));
    over.cancel();
    open_.close_all();
    all_done.recv();
    weft::io::stop_signals(signals);
  }

 private:
  void accept_all(const stop_stages& stop) {
    while (true) {
      std::error_code ec;
      weft::net::tcp_stream s = listener_.accept(ec);
      if (stop.asked.err()) return;
      if (ec) {
        std::fprintf(stderr, "%s: accept: %s\n", name_, ec.message().c_str());
        weft::sleep(100ms);
        continue;
      }
      try {
        serving_.go([this, &stop, s = std::move(s)]() mutable { serve_one(s, stop); });
      } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "%s: no memory for another connection\n", name_);
      }
    }
  }

  void serve_one(weft::net::tcp_stream& s, const stop_stages& stop) {
    connections::entry entry(open_, s);
    try {
      handler_(s, stop);
    } catch (const std::system_error&) {
      // The peer is gone, or too slow, or we are stopping: daily business.
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: connection dropped: %s\n", name_, e.what());
    }
  }

  const char* name_;
  std::chrono::milliseconds grace_;
  const connection_handler& handler_;
  weft::net::tcp_listener listener_;
  connections open_;
  weft::wait_group serving_;
};

}  // namespace

int serve(const char* name, const server_options& o, const connection_handler& handler) try {
  raise_descriptor_limit();
  server(name, o, handler).run();
  return 0;
} catch (const std::system_error& e) {
  std::fprintf(stderr, "%s: %s: %s\n", name, address(o).c_str(), e.code().message().c_str());
  return 1;
}

}  // namespace demo
