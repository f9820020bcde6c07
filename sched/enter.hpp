// Entering and leaving the runtime.
//
// While an M is inside the runtime, its P cannot be taken, so it may use per-P data. While it is outside, in user code,
// sysmon and stop-the-world may detach the P at any time; the M finds that out when it next enters.
//
// Entering is one side of an asymmetric Dekker ("revoke"):
//
//     the M, entering                      the thread that takes the P (preempt.cpp)
//     E1  depth = 1          (plain)       T1  requests |= revoked
//     E2  light barrier                    T2  heavy barrier (runtime/asymmetric.hpp)
//     E3  read requests      (plain)       T3  read depth
//
// If T3 reads 0, E1 was not visible at T2, so E3 comes after T2 and reads `revoked`. The M then goes the slow way,
// takes the scheduler's lock and finds its P gone. If T3 reads 1, the taker gives up and takes `revoked` back. If the M
// has seen `revoked` nevertheless, it goes the slow way, and finds under the lock that it still has its P. A goroutine
// in no_preemption keeps its P, although T3 reads 0; `revoked` stays raised then, and has it come by when that ends.
//
// Leaving stores depth with release, and T3 reads it with acquire: what the M did with the P is visible to the next
// owner.
//
// Calls nest: a callback of the runtime may enter again. Only the outermost call answers requests, since only there may
// the goroutine be suspended.
#pragma once

#include "runtime/asymmetric.hpp"
#include "sched/alone.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

WEFT_NOINLINE M* enter_slow(M* m) noexcept;

// Returns the M of the calling thread, or null on a foreign thread. After a suspension the result is out of date.
inline M* this_m() noexcept {
  thread_state* ts = this_thread_or_null();
  return ts && ts->worker ? static_cast<M*>(ts) : nullptr;
}

// Announces that m is inside. False: there is a request, and the caller must call enter_slow unless the call is nested.
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

// As enter_runtime, for a caller that takes no goroutine_lock.
inline M* enter_without_locks() noexcept {
  M* m = this_m();
  return m ? enter_runtime_on(m) : nullptr;
}

// m is what enter_runtime returned, or the M on which the last suspension came back.
inline void leave_runtime(M* m) noexcept {
  if (m) m->depth.store(m->depth.load(relaxed) - 1, release);
}

// Enters the runtime if that takes no call of a function, so that a caller that makes no other calls stays a leaf.
// Null: nothing has happened.
inline M* try_enter_runtime() noexcept {
  M* m = this_m();
  if (!m) return nullptr;
  if (WEFT_LIKELY(announce_entry(m, m->depth.load(relaxed)))) return m;
  leave_runtime(m);
  return nullptr;
}

// As try_enter_runtime, but null also if the caller is inside already. So the depth is a constant on both sides, and
// the next entry does not wait for what this exit stores: it predicts a branch (docs/adr/0056-words-under-the-lock.md).
inline M* enter_from_user_code() noexcept {
  M* m = this_m();
  if (!m || m->depth.load(relaxed) != 0) return nullptr;
  if (WEFT_LIKELY(announce_entry(m, 0))) return m;
  m->depth.store(0, release);
  return nullptr;
}
inline void leave_to_user_code(M* m) noexcept { m->depth.store(0, release); }

// Returns the G of the caller, which runs on m, or of the calling foreign thread if m is null.
inline G* current_g(const M* m) noexcept { return m ? m->g : this_thread()->g; }

// Keeps the caller inside the runtime for a block. m() is the present M: after a suspension the caller must pass the M
// that this returned to resumed_on.
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

// Used inside the runtime, for a block in which the user's code runs. That code uses nothing of a P except by entering
// again. So a thread that waits for the M because that may still think that it is alone (alone.cpp) need not wait for
// this block.
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

// --- for an M whose goroutine cannot go on at the moment. Called inside the runtime.

// Puts the goroutine at the end of the global queue. The M looks for other work, or goes to sleep if it has no P.
// Returns the M that has picked the goroutine up.
[[nodiscard]] M* give_way(M* m) noexcept;
// Moves the goroutine to another M, if one is to be had. Otherwise the goroutine gives way. Returns the M that it is
// on.
[[nodiscard]] M* leave_thread(M* m) noexcept;

}  // namespace weft::rt
