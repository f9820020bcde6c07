// The hub: one goroutine that owns the state of the chat, that is who is here and in which room. All other goroutines
// talk to it through a channel, so nothing needs a lock.
//
//     client's reader --event--> inbox --> hub --line--> outbox --> client's writer
//
// An outbox is bounded, and the hub never waits for one. If an outbox is full, the hub keeps further lines for it,
// since a flood may be too much for any client, and makes those who talk in that room wait for their next turn. A
// client that has not caught up after a moment is dropped.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/time.hpp>

namespace demo::chat {

using client_id = std::uint64_t;

// What the hub sends to a client, in lines with their newlines. The hub closes the outbox when it is done with the
// client. The writer then sends the last word, if there is one; it has a channel of its own because the outbox may be
// full. After each line from the client, the hub sends in `turn` when the next one may come. It closes `turn` together
// with the outbox.
struct mailbox {
  explicit mailbox(std::size_t queue) : outbox(queue), last_word(1), turn(1) {}
  weft::chan<std::string> outbox;
  weft::chan<std::string> last_word;
  weft::chan<void> turn;
};

// What clients tell the hub.
struct arrived {
  client_id who;
  mailbox mail;
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
  // A client that is silent for half of `idle_limit` is asked whether it is still there; after all of it, it is
  // dropped.
  hub(weft::chan<event> inbox, weft::context quit, std::chrono::milliseconds idle_limit)
      : inbox_(std::move(inbox)), quit_(std::move(quit)), idle_limit_(idle_limit) {}

  // Runs until the inbox is closed. When `quit` is cancelled, sends all clients away.
  void run();

 private:
  struct client {
    client_id id;
    std::string nick;
    std::string room;
    mailbox mail;
    weft::time_point last_heard;
    bool asked = false;              // it has been asked whether it is still there
    std::deque<std::string> late{};  // lines that its outbox had no room for
    weft::time_point late_since{};
    std::chrono::nanoseconds patience{};  // for how much longer it may be late
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
  void tell_list(client& c, std::string_view head, const auto& items);
  void tell_room(const std::string& room, std::string_view line, const client* but = nullptr);
  void remove(client_map::iterator c, std::string_view to_it, std::string_view to_room);

  void settle();
  bool catch_up(client& c);
  void drop_slow();
  void give_turns();

  weft::chan<event> inbox_;
  weft::context quit_;
  std::chrono::milliseconds idle_limit_;
  client_map clients_;
  std::set<client_id> late_;                     // the clients that have late lines
  std::map<client_id, weft::time_point> spoke_;  // the clients that wait for their turn, and since when
};

}  // namespace demo::chat
