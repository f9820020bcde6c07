// The hub: one goroutine that owns who is here and in which room. Everybody else talks to it through a channel, so
// there is nothing to lock.
//
//     client's reader --event--> inbox --> hub --line--> outbox --> client's writer
//
// The hub never waits for a client. An outbox is bounded, and who lets it run full is dropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/time.hpp>

namespace demo::chat {

using client_id = std::uint64_t;

// Lines for one client, each with its end. The hub sends, and closes it when it is done with the client. Its last place
// is kept for the reason why, so it holds one more than it seems.
using line_chan = weft::chan<std::string>;

// What clients tell the hub.
struct arrived {
  client_id who;
  line_chan outbox;
};
struct said {
  client_id who;
  std::string line;
};
struct left {
  client_id who;
};
using event = std::variant<arrived, said, left>;

class hub {
 public:
  // Who is silent for half of `idle_limit` is asked, and for all of it dropped.
  hub(weft::chan<event> inbox, weft::context quit, std::chrono::milliseconds idle_limit)
      : inbox_(std::move(inbox)), quit_(std::move(quit)), idle_limit_(idle_limit) {}

  // Works until the inbox is closed. When `quit` is cancelled everybody is sent away.
  void run();

 private:
  struct client {
    std::string nick;
    std::string room;
    line_chan outbox;
    weft::time_point last_heard;
    bool asked = false;  // whether it is still there
    bool slow = false;   // its outbox is full
  };
  using client_map = std::map<client_id, client>;

  void on(arrived& e);
  void on(said& e);
  void on(left& e);
  void on_tick();
  void on_quit();

  void command(client_map::iterator c, std::string_view line);
  void rename(client& c, std::string_view nick);
  void join(client& c, std::string_view room);
  void list_people(client& c);
  void list_rooms(client& c);

  void tell(client& c, std::string_view line);
  void tell_room(const std::string& room, std::string_view line, const client* but = nullptr);
  void remove(client_map::iterator c, std::string_view to_it, std::string_view to_room);
  void drop_slow();

  weft::chan<event> inbox_;
  weft::context quit_;
  std::chrono::milliseconds idle_limit_;
  client_map clients_;
};

}  // namespace demo::chat
