#include "hub.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <weft/weft.hpp>

#include "text.hpp"

namespace demo::chat {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {
constexpr std::string_view lobby = "lobby";
constexpr std::string_view guest = "guest";               // and a number: a client that has not chosen a name
constexpr std::chrono::nanoseconds patience = 200ms;      // how long a client may take to empty a full outbox
constexpr std::chrono::nanoseconds longest_wait = 200ms;  // for a turn, while somebody in the room is late
constexpr std::chrono::milliseconds look_again = 1ms;     // between two checks whether a full outbox has room
constexpr std::size_t longest_list_line = 500;
constexpr std::string_view the_end = "* The server stops. Goodbye.";
constexpr std::string_view help =
    "* What you type goes to everybody in your room. Commands:\n"
    "*   /nick NAME   call yourself NAME\n"
    "*   /join ROOM   go to another room\n"
    "*   /who         who is in this room\n"
    "*   /rooms       which rooms there are\n"
    "*   /quit        leave";
}  // namespace

void hub::run() {
  const weft::ticker tick(std::clamp<std::chrono::milliseconds>(idle_limit_ / 10, 10ms, 1s));
  weft::recv_chan<void> quit = quit_.done();
  bool open = true;

  const auto on_event = [&](std::optional<event> e) {
    open = e.has_value();
    if (e) std::visit([&](auto& what) { on(what); }, *e);
  };
  const auto quit_once = [&] {
    on_quit();
    quit = weft::recv_chan<void>(weft::nil);  // a closed channel is ready for ever, a nil one never
  };

  while (open) {
    weft::select(weft::on_recv(inbox_, on_event),                     //
                 weft::on_recv(tick.channel(), [&] { on_tick(); }),   //
                 weft::on_recv(quit, quit_once),                      //
                 weft::on_timeout(late_.empty() ? 1s : look_again));  // within 1 s a tick comes anyway
    settle();
  }
}

void hub::on(arrived& e) {
  const auto [c, is_new] = clients_.try_emplace(e.who, client{.id = e.who,
                                                              .nick = std::string(guest) + std::to_string(e.who),
                                                              .room = std::string(lobby),
                                                              .mail = std::move(e.mail),
                                                              .last_heard = clock::now()});
  client& who = c->second;
  if (quit_.err()) return remove(c, the_end, "");
  tell(who, "* Welcome. You are " + who.nick + " in #" + who.room + "; /help tells what you can do.");
  tell_room(who.room, "* " + who.nick + " is here", &who);
}

void hub::on(said& e) {
  const auto c = clients_.find(e.who);
  if (c == clients_.end()) return;  // dropped, and its reader does not know yet
  client& who = c->second;
  who.last_heard = clock::now();
  who.asked = false;
  spoke_[e.who] = who.last_heard;
  if (e.line.starts_with('/')) {
    command(c, e.line);
  } else if (!e.line.empty()) {
    tell_room(who.room, who.nick + ": " + e.line, &who);
  }
}

void hub::on(left& e) {
  if (quit_.err()) return on_quit();  // it left because we stop
  if (const auto c = clients_.find(e.who); c != clients_.end()) remove(c, "", "left");
}

void hub::on_tick() {
  const weft::time_point now = clock::now();
  for (auto next = clients_.begin(); next != clients_.end();) {
    const auto c = next++;
    client& who = c->second;
    const auto silent = now - who.last_heard;
    if (silent >= idle_limit_) {
      remove(c, "* You were silent for too long. Goodbye.", "was silent for too long");
    } else if (silent >= idle_limit_ / 2 && !who.asked) {
      who.asked = true;
      tell(who, "* Are you still there? Say something, or you will be disconnected.");
    }
  }
}

void hub::on_quit() {
  while (!clients_.empty()) remove(clients_.begin(), the_end, "");
}

void hub::command(client_map::iterator c, std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  std::string_view argument = space == std::string_view::npos ? "" : line.substr(space + 1);
  while (argument.ends_with(' ')) argument.remove_suffix(1);

  client& who = c->second;
  if (name == "/nick") return rename(who, argument);
  if (name == "/join") return join(who, argument);
  if (name == "/who") return list_people(who);
  if (name == "/rooms") return list_rooms(who);
  if (name == "/help") return tell(who, help);
  if (name == "/quit") return remove(c, "* Goodbye.", "left");
  tell(who, "* There is no command " + std::string(name) + "; /help lists the commands.");
}

void hub::rename(client& c, std::string_view nick) {
  if (!is_name(nick)) return tell(c, "* A name has 1 to 20 letters, digits, - and _.");
  if (same_name(nick.substr(0, guest.size()), guest)) return tell(c, "* That name is for guests.");
  const bool taken = std::ranges::any_of(
      clients_, [&](const auto& entry) { return &entry.second != &c && same_name(entry.second.nick, nick); });
  if (taken) return tell(c, "* " + std::string(nick) + " is taken.");
  const std::string old = std::exchange(c.nick, std::string(nick));
  tell_room(c.room, "* " + old + " is now " + c.nick);
}

void hub::join(client& c, std::string_view room) {
  if (room.starts_with('#')) room.remove_prefix(1);
  if (!is_name(room)) return tell(c, "* A room's name has 1 to 20 letters, digits, - and _.");
  if (room == c.room) return tell(c, "* You are in #" + c.room + ".");
  tell_room(c.room, "* " + c.nick + " went to #" + std::string(room), &c);
  c.room = room;
  tell(c, "* You are now in #" + c.room + ".");
  tell_room(c.room, "* " + c.nick + " is here", &c);
}

void hub::list_people(client& c) {
  std::set<std::string> names;
  for (const auto& [id, other] : clients_) {
    if (other.room == c.room) names.insert(other.nick);
  }
  tell_list(c, "* In #" + c.room + ":", names);
}

void hub::list_rooms(client& c) {
  std::map<std::string, int> people;
  for (const auto& [id, other] : clients_) ++people[other.room];
  std::vector<std::string> rooms;
  for (const auto& [room, n] : people) rooms.push_back("#" + room + " (" + std::to_string(n) + ")");
  tell_list(c, "* Rooms:", rooms);
}

// Splits the list into lines of bounded length, since an outbox is bounded by its number of lines.
void hub::tell_list(client& c, std::string_view head, const auto& items) {
  std::string line(head);
  for (const std::string& item : items) {
    if (line.size() + 1 + item.size() > longest_list_line) {
      tell(c, line);
      line = "* ";
    }
    line += ' ' + item;
  }
  tell(c, line);
}

void hub::tell(client& c, std::string_view line) {
  std::string text = std::string(line) + '\n';
  if (c.late.empty()) {
    if (c.mail.outbox.size() == 0) c.patience = patience;
    if (c.mail.outbox.try_send(std::move(text))) return;
    c.late_since = clock::now();
    late_.insert(c.id);
  }
  c.late.push_back(std::move(text));  // it was not sent, so it was not moved from
}

void hub::tell_room(const std::string& room, std::string_view line, const client* but) {
  for (auto& [id, c] : clients_) {
    if (c.room == room && &c != but) tell(c, line);
  }
}

// Removes a client. `to_it` is a last line to the client, `to_room` is one to its room; either may be empty.
void hub::remove(client_map::iterator c, std::string_view to_it, std::string_view to_room) {
  const client gone = std::move(c->second);
  clients_.erase(c);
  late_.erase(gone.id);
  spoke_.erase(gone.id);

  std::string last;
  for (const std::string& line : gone.late) last += line;
  if (!to_it.empty()) last += std::string(to_it) + '\n';
  if (!last.empty()) gone.mail.last_word.send(std::move(last));
  gone.mail.outbox.close();
  gone.mail.turn.close();
  if (!to_room.empty()) tell_room(gone.room, "* " + gone.nick + ' ' + std::string(to_room));
}

// Does what remains to be done after each event.
void hub::settle() {
  std::erase_if(late_, [&](client_id id) { return catch_up(clients_.at(id)); });
  drop_slow();
  give_turns();
}

// Sends a client its late lines, as far as its outbox has room. True: none is left.
bool hub::catch_up(client& c) {
  const weft::time_point now = clock::now();
  if (c.mail.outbox.size() == 0) {
    c.patience = patience;
    c.late_since = now;
  }
  while (!c.late.empty() && c.mail.outbox.try_send(std::move(c.late.front()))) c.late.pop_front();
  if (!c.late.empty()) return false;
  c.patience -= now - c.late_since;  // a client that only takes just enough uses it up, too
  return true;
}

// Drops clients that have been late for too long. Looks from the beginning each time, since telling the others of one
// may make another one late.
void hub::drop_slow() {
  const weft::time_point now = clock::now();
  const auto is_slow = [&](client_id id) {
    const client& c = clients_.at(id);
    return now - c.late_since >= c.patience;
  };
  for (auto id = late_.begin(); (id = std::ranges::find_if(late_, is_slow)) != late_.end();) {
    const auto c = clients_.find(*id);
    std::fprintf(stderr, "weft-chat: %s was dropped: it does not read\n", c->second.nick.c_str());
    remove(c, "* You were dropped: you do not read what you are sent.", "was dropped: it does not read");
  }
}

// Gives a turn to the clients that spoke. Where somebody in the room is late, they have to wait for `longest_wait`
// first.
void hub::give_turns() {
  std::set<std::string_view> crowded;
  for (const client_id id : late_) crowded.insert(clients_.at(id).room);
  const weft::time_point now = clock::now();
  std::erase_if(spoke_, [&](const auto& entry) {
    const auto& [id, since] = entry;
    const client& who = clients_.at(id);
    if (crowded.contains(who.room) && now - since < longest_wait) return false;
    who.mail.turn.send();
    return true;
  });
}

}  // namespace demo::chat
