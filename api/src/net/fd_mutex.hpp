// Keeps track of the calls that use a descriptor: Go's fdMutex (internal/poll/fd_mutex.go).
//
// One word holds all of it, so entering a call and leaving it are one atomic operation each:
//
//   closing      no call may begin any more
//   keep_open    the descriptor was given away (release()): the last user does not close it
//   read_lock    a reader is inside           write_lock    a writer is inside
//   users        calls inside, including those that wait for their turn
//   readers      calls that wait for the read lock          writers    likewise
//
// "Who closes it": the call that takes `users` to 0 while `closing` is set gets leave::last, and closes the descriptor.
// There is exactly one such call. So no call uses a number that was given out again, and the object lives as long as a
// call is in it.
//
// "Taking turns": an unlock while a call waits leaves the lock bit set and passes the lock on (grant), first come,
// first served. A waiter is counted in the word before it is on the list, so a grant may come first; it is then kept
// until the waiter arrives. Closing takes the waiters out of the word's counts and refuses them all, those on the list
// and those that still arrive. A grant that finds the list closed is taken back, and its unlock gives up the lock for
// real.
//
// "Left behind": a goroutine that waits when its run() ends never comes back, and the turn that it has or wants must
// not be lost with it. If it waits for its turn, the grant that meets it skips it. If it has the turn, it leaves a mark
// while it waits (`away`). It sets the mark before it enters the runtime, where it may be suspended for good, and
// clears it just before it leaves the runtime, so that a goroutine that runs on is never taken for lost. A call that
// finds such a mark of an abandoned goroutine inherits the turn. A foreign thread that waits looks for one now and
// then, or leaves when its run() is over. In both cases the lost goroutine is no longer a user once that is noticed.
// Only a goroutine that was stopped elsewhere stays a user for ever.
#pragma once

#include "runtime/g.hpp"
#include "runtime/lock.hpp"

#include <cstdint>

namespace weft::rt {
class runtime_scope;
}

namespace weft::net {

enum class side : std::uint8_t { read, write };

// Tells the caller of exit or unlock what to do: `last` means that it must close the descriptor.
enum class leave : bool { stays, last };

// inherited: entered, with the turn of a goroutine that was left behind, maybe in the middle of a wait.
enum class entry : std::uint8_t { entered, inherited, closed_before, closed_meanwhile };

class fd_mutex {
 public:
  fd_mutex() = default;
  fd_mutex(const fd_mutex&) = delete;
  fd_mutex& operator=(const fd_mutex&) = delete;

  // For a call that takes no turn. enter() returns false if it is closed.
  [[nodiscard]] bool enter() noexcept;
  [[nodiscard]] leave exit() noexcept;

  // For a call that reads or writes. lock() waits for the turn.
  [[nodiscard]] entry lock(side s) noexcept;
  [[nodiscard]] leave unlock(side s) noexcept;

  // Called around a wait by the goroutine that has this turn: go_away before it enters the runtime, come_back before it
  // leaves it.
  void go_away(side s, rt::G* g) noexcept { turn_of(s).away.store(g, rt::release); }
  void come_back(side s) noexcept { turn_of(s).away.store(nullptr, rt::relaxed); }

  // Closes, and makes the caller a user. False: somebody else has closed it. A goroutine whose run() may end
  // meanwhile is in the runtime already, or it might be stopped for good in the middle (descriptor::close).
  [[nodiscard]] bool close(bool keep_open) noexcept;

  bool closed() const noexcept { return word_.load(rt::acquire) & closing; }
  bool kept_open() const noexcept { return word_.load(rt::relaxed) & keep_open; }

 private:
  static constexpr std::uint64_t closing = 1, keep_open = 2, read_lock = 4, write_lock = 8;
  static constexpr std::uint64_t user = 1u << 4, reader = 1u << 24, writer = std::uint64_t{1} << 44;
  static constexpr std::uint64_t count_mask = (1u << 20) - 1;
  static constexpr std::uint64_t users_mask = count_mask * user;
  static constexpr std::uint64_t waiters_mask = count_mask * reader | count_mask * writer;

  static constexpr std::uint64_t lock_bit(side s) noexcept { return s == side::read ? read_lock : write_lock; }
  static constexpr std::uint64_t one_waiter(side s) noexcept { return s == side::read ? reader : writer; }
  static constexpr std::uint64_t waiters(side s) noexcept { return count_mask * one_waiter(s); }

  entry lock_slow(side s) noexcept;
  entry wait_for_turn(side s, rt::runtime_scope& scope) noexcept;
  entry wait_as_thread(side s, rt::G* g) noexcept;
  bool count_out(side s) noexcept;
  enum class granted : std::uint8_t { passed_on, skipped, refused };
  [[nodiscard]] granted grant(side s) noexcept;
  [[nodiscard]] leave unlock_slow(side s) noexcept;
  bool was_left_behind(side s) noexcept;
  bool inherit(side s) noexcept;

  struct turn {
    rt::g_list waiting;
    bool kept = false;  // a grant came before its waiter
    // The goroutine that has the turn, while it waits. Written by that goroutine, by the call that grants it the turn,
    // and by the one that finds it left behind.
    rt::atomic<rt::G*> away{nullptr};
  };
  turn& turn_of(side s) noexcept { return s == side::read ? reading_ : writing_; }

  rt::atomic<std::uint64_t> word_{0};
  rt::lock mutex_{rt::lock_rank::sync};
  // under mutex_:
  bool refusing_ = false;
  turn reading_;
  turn writing_;
};

}  // namespace weft::net
