// Who waits for goroutines to end. A waiter lies on the stack of who waits: one that is readied may be gone at the next
// instruction.
#pragma once

#include "sched/park.hpp"

#include <utility>

namespace weft::detail {

struct end_waiter {
  rt::G* g;
  rt::wait_ticket ticket;
  end_waiter* next = nullptr;
};

// A list of them. Everything is done under a lock of its owner's, but ready_all.
class end_waiters {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  // But for those whose run() is over.
  bool somebody_waits() const noexcept {
    for (const end_waiter* w = first_; w; w = w->next) {
      if (!w->g->waits_for_good()) return true;
    }
    return false;
  }
  void add(end_waiter* w) noexcept { w->next = std::exchange(first_, w); }

  // One that is not linked any more is left alone.
  void remove(const end_waiter* w) noexcept {
    end_waiter** at = &first_;
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
  }

  // Takes all of them, and returns those whose wait this ends: to be readied when the lock is released. Claimed under
  // the lock: a waiter whose time passes needs it to go away.
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
