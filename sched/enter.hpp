// Entering and leaving the runtime.
//
// Between entering and leaving, the M's P cannot be taken, so per-P data may be used. Outside (user code), sysmon and
// stop-the-world may detach the P at any time; the M finds that out when it enters next.
//
// The asymmetric Dekker ("revoke"), both sides:
//
//     M, entering                          whoever takes the P (preempt.cpp)
//     E1  depth = 1          (plain)       T1  requests |= revoked
//     E2  light barrier                    T2  heavy barrier (runtime/asymmetric.hpp)
//     E3  read requests      (plain)       T3  read depth
//
// If T3 reads 0, E1 was not visible at T2, so E3 comes after T2 and reads `revoked`: the M goes the slow way, takes
// the scheduler's lock and finds its P gone. If T3 reads 1, the taker gives up and takes `revoked` back; the M may
// have seen it or not, and in the slow way, under the lock, finds that it still has its P.
//
// Leaving stores depth with release; T3 reads it with acquire: what the M did with the P is visible to the next owner.
//
// Calls nest (a callback of the runtime may enter again): only the outermost one looks at requests, since only
// there may the goroutine be suspended.
#pragma once

#include "runtime/asymmetric.hpp"
#include "sched/alone.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

WEFT_NOINLINE M* enter_slow(M* m) noexcept;

// The M of the calling thread, or null on a foreign thread. No suspension until it is used.
inline M* this_m() noexcept {
  thread_state* ts = this_thread_or_null();
  return ts && ts->worker ? static_cast<M*>(ts) : nullptr;
}

// False: it takes enter_slow, unless the call is nested.
inline bool announce_entry(M* m, std::uint32_t depth) noexcept {
  m->depth.store(depth + 1, relaxed);     // E1
  light_barrier();                        // E2
  return m->requests.load(relaxed) == 0;  // E3
}

inline M* enter_runtime_on(M* m) noexcept {
  std::uint32_t depth = m->depth.load(relaxed);
  if (WEFT_LIKELY(announce_entry(m, depth))) return m;
  return depth != 0 ? m : enter_slow(m);
}

inline M* enter_runtime() noexcept {
  M* m = this_m();
  if (WEFT_LIKELY(m != nullptr)) return enter_runtime_on(m);
  note_foreign_thread();
  return nullptr;
}

// For a caller that takes no goroutine_lock.
inline M* enter_without_locks() noexcept {
  M* m = this_m();
  return m ? enter_runtime_on(m) : nullptr;
}

// `m`: what enter_runtime returned, or the M that the last suspension came back on.
inline void leave_runtime(M* m) noexcept {
  if (m) m->depth.store(m->depth.load(relaxed) - 1, release);
}

// Enters if that takes no call, so that a function that makes no other stays a leaf. Null: nothing has happened.
inline M* try_enter_runtime() noexcept {
  M* m = this_m();
  if (!m) return nullptr;
  if (WEFT_LIKELY(announce_entry(m, m->depth.load(relaxed)))) return m;
  leave_runtime(m);
  return nullptr;
}

// Of the caller, who is on m, or on a foreign thread.
inline G* current_g(const M* m) noexcept { return m ? m->g : this_thread()->g; }

// Enters for a block. Inside, `m()` is the present M: after a suspension assign what that returned.
class [[nodiscard]] runtime_scope {
 public:
  runtime_scope() noexcept : m_(enter_runtime()) {}
  explicit runtime_scope(M* entered) noexcept : m_(entered) {}
  ~runtime_scope() { leave_runtime(m_); }
  runtime_scope(const runtime_scope&) = delete;
  runtime_scope& operator=(const runtime_scope&) = delete;

  M* m() const noexcept { return m_; }
  void resumed_on(M* m) noexcept { m_ = m; }
  G* g() const noexcept { return current_g(m_); }

 private:
  M* m_;
};

// Inside, for a block in which the user's code runs, which uses nothing of a P but by entering again: nobody waits for
// it who waits for an M that may think it is alone (alone.cpp).
class users_code_scope {
 public:
  users_code_scope() noexcept : m_(this_m()) {
    if (!m_) return;
    before_ = m_->outside_at.load(relaxed);
    m_->outside_at.store(m_->depth.load(relaxed), release);  // as leave_runtime
  }
  ~users_code_scope() {
    if (!m_) return;
    m_->outside_at.store(before_, relaxed);  // E1
    light_barrier();                         // E2
  }
  users_code_scope(const users_code_scope&) = delete;
  users_code_scope& operator=(const users_code_scope&) = delete;

 private:
  M* m_;
  std::uint32_t before_ = 0;
};

// --- an M whose goroutine cannot go on just now; inside the runtime

// The goroutine goes to the end of the global queue and its M looks for something else; an M without a P goes to sleep
// there. Returns on the M that picked the goroutine up.
[[nodiscard]] M* give_way(M* m) noexcept;
// It goes on on another M, if there is one to be had.
[[nodiscard]] M* leave_thread(M* m) noexcept;

}  // namespace weft::rt
