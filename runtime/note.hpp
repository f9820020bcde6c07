// A note: one thread sleeps on it until another one wakes it. All wake-ups since the last `clear` count as one. After
// Go's runtime.note.
#pragma once

#include "runtime/fatal.hpp"
#include "runtime/futex.hpp"

namespace weft::rt {

// Wakes the sleeper of one note, and no more, at the end of its scope, if one was given to it (note::wakeup). Declared
// before a lock_guard, it makes the system call when the lock is free again. The note and its sleeper may be gone by
// then: the sleeper may have seen the word that was written under the lock, and the system call only looks up an
// address.
class late_wakeup {
 public:
  late_wakeup() noexcept = default;
  ~late_wakeup() {
    if (word_) futex_wake(word_, 1);
  }
  late_wakeup(const late_wakeup&) = delete;
  late_wakeup& operator=(const late_wakeup&) = delete;

 private:
  friend class note;
  atomic<std::uint32_t>* word_ = nullptr;
};

class note {
 public:
  // seq_cst: a thread that clears the note, and then looks whether to sleep, misses no wake-up.
  void clear() noexcept { word_.store(0, seq_cst); }

  // Release: after sleep(), the sleeper sees what the waker did before. For seq_cst, see clear().
  void wakeup() noexcept {
    word_.store(1, seq_cst);
    futex_wake(&word_, 1);
  }
  void wakeup(late_wakeup& rest) noexcept {
    WEFT_CHECK(!rest.word_, "a late_wakeup is given a second note");
    word_.store(1, seq_cst);
    rest.word_ = &word_;
  }

  void sleep() noexcept {
    while (word_.load(acquire) == 0) futex_wait(&word_, 0);
  }

  // False: `deadline` passed first (the wake-up may still come).
  bool sleep_until(nanos deadline) noexcept {
    while (word_.load(acquire) == 0) {
      if (!futex_wait_until(&word_, 0, deadline)) return word_.load(acquire) != 0;
    }
    return true;
  }

 private:
  atomic<std::uint32_t> word_{0};
};

}  // namespace weft::rt
