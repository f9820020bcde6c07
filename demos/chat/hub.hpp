// The hub: one goroutine that owns who is here and in which room. Everybody else talks to it through a channel, so
// there is nothing to lock.
//
//     client's reader --event--> inbox --> hub --line--> outbox --> client's writer
//
// An outbox is bounded, and the hub waits for none. If one runs full, the hub keeps what comes for it, as a flood may
// be too much for anybody, and lets those who talk in that room wait for their next turn. Who has not caught up in a
// moment is dropped.
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

// What goes to a client, in lines with their ends. The hub closes the outbox when it is done with the client; the last
// word may follow. It has a channel of its own because the outbox may be full. After each line of the client the hub
// says in `turn` when the next one may come; it closes that, too.
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
  // Who is silent for half of `idle_limit` is asked, and for all of it dropped.
  hub(weft::chan<event> inbox, weft::context quit, std::chrono::milliseconds idle_limit)
      : inbox_(std::move(inbox)), quit_(std::move(quit)), idle_limit_(idle_limit) {}

  // Works until the inbox is closed. When `quit` is cancelled everybody is sent away.
  void run();

 private:
  struct client {
    client_id id;
    std::string nick;
    std::string room;
    mailbox mail;
    weft::time_point last_heard;
    bool asked = false;              // whether it is still there
    std::deque<std::string> late{};  // what its outbox had no room for
    weft::time_point late_since{};
    std::chrono::nanoseconds patience{};  // how much longer it may be late
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
  std::set<client_id> late_;                     // who has something late
  std::map<client_id, weft::time_point> spoke_;  // who waits for its turn, and since when
};

}  // namespace demo::chat
