// Lists of goroutines and threads that wait for goroutines to end. A waiter lies on the stack of the goroutine that
// waits, so once it is readied it may be gone at the next instruction.
#pragma once

#include "sched/park.hpp"

#include <utility>

namespace weft::detail {

struct end_waiter {
  rt::G* g;
  rt::wait_ticket ticket;
  end_waiter* next = nullptr;
};

// A list of waiters. Its owner has a lock, under which every member but ready_all is called.
class end_waiters {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  // True if somebody waits whose run() is not over.
  bool somebody_waits() const noexcept {
    for (const end_waiter* w = first_; w; w = w->next) {
      if (!w->g->waits_for_good()) return true;
    }
    return false;
  }
  void add(end_waiter* w) noexcept { w->next = std::exchange(first_, w); }

  // Unlinks w. Does nothing if w is not linked any more.
  void remove(const end_waiter* w) noexcept {
    end_waiter** at = &first_;
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
  }

  // Empties the list, and returns the waiters whose wait this ends. The caller readies them after it has released the
  // lock. They are claimed under the lock, since a waiter whose time limit passes needs the lock to go away.
  [[nodiscard]] end_waiter* claim_all() noexcept {
    end_waiter* claimed = std::exchange(first_, nullptr);
    for (end_waiter** keep = &claimed; end_waiter* w = *keep;) {
      if (w->g->claim(w->ticket)) {
        keep = &w->next;
      } else {
        *keep = w->next;
      }
    }
    return claimed;
  }

  static void ready_all(rt::M* m, end_waiter* claimed) noexcept {
    while (claimed) {
      rt::G* g = claimed->g;
      claimed = claimed->next;
      rt::ready(m, g);
    }
  }

 private:
  end_waiter* first_ = nullptr;
};

}  // namespace weft::detail
