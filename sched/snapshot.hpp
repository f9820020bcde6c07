// All goroutines as they are at one moment. Who stops the world only copies them, so that it goes on soon: which
// function an address lies in is looked up, and text is made, when they are shown (dump.cpp).
#pragma once

#include "runtime/clock.hpp"
#include "runtime/g.hpp"
#include "runtime/mapped_list.hpp"
#include "runtime/traceback.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::rt {

// A goroutine as it was.
struct seen_goroutine {
  std::uint64_t id;
  std::uint64_t key;  // the same for those that are shown as one
  nanos wait_since;   // G::wait_since
  const void* spawn_pc;
  std::size_t trace_at;  // where the trace is kept; 0: nowhere
  g_state state;
  wait_reason reason;
  std::uint8_t marks;
  bool begun;
  char name[sizeof G::name];

  bool ran() const noexcept { return state == g_state::running || state == g_state::syscall; }

  // With the hash of a trace: the key.
  std::uint64_t key_with(std::uint64_t trace_hash) const noexcept;
};

class snapshot {
 public:
  // Of all but `except`. with_stacks: none of those that do not run begins to meanwhile. Takes no lock, and nothing of
  // the heap.
  void take(const G* except, bool with_stacks) noexcept;

  std::span<seen_goroutine> goroutines() const noexcept { return goroutines_.all(); }
  nanos taken_at() const noexcept { return taken_at_; }
  bool has_stacks() const noexcept { return has_stacks_; }
  void get_trace(const seen_goroutine& g, trace* out) const noexcept;  // empty if none is kept

 private:
  friend class snapshot_taker;

  mapped_list<seen_goroutine> goroutines_;
  // One for each key, as a rule: {frames, left out, pc, ...}. The first word is none's, as 0 is "nowhere".
  mapped_list<std::uint64_t> traces_;
  nanos taken_at_ = 0;
  bool has_stacks_ = false;
};

}  // namespace weft::rt
