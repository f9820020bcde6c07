// All goroutines as they are at one moment. While the world is stopped they are only copied, so that it can soon go on.
// The functions that addresses lie in are looked up, and text is made, when the goroutines are shown (dump.cpp).
#pragma once

#include "runtime/clock.hpp"
#include "runtime/g.hpp"
#include "runtime/mapped_list.hpp"
#include "runtime/traceback.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::rt {

// A goroutine as it was at that moment.
struct seen_goroutine {
  std::uint64_t id;
  std::uint64_t key;  // the same for goroutines that are shown as a group
  nanos wait_since;   // G::wait_since
  const void* spawn_pc;
  std::size_t trace_at;  // where the trace is kept; 0: nowhere
  g_state state;
  wait_reason reason;
  std::uint8_t marks;
  bool begun;
  char name[sizeof G::name];

  // Returns the key, given the hash of the trace.
  std::uint64_t key_with(std::uint64_t trace_hash) const noexcept;
};

// Whose stacks are read: of all that do not run, if the caller makes sure that none begins to run meanwhile; or only of
// those that are parked.
enum class stacks : std::uint8_t { none, of_parked, of_all };

class snapshot {
 public:
  // Takes a snapshot of all goroutines but `except`. Takes no lock, and allocates nothing from the heap.
  void take(const G* except, stacks which) noexcept;

  std::span<seen_goroutine> goroutines() const noexcept { return goroutines_.all(); }
  nanos taken_at() const noexcept { return taken_at_; }
  bool has_stacks() const noexcept { return stacks_ != stacks::none; }
  void get_trace(const seen_goroutine& g, trace* out) const noexcept;  // *out is empty if no trace was kept

 private:
  friend class snapshot_taker;

  mapped_list<seen_goroutine> goroutines_;
  // As a rule one trace for each key: {frames, left out, pc, ...}. The first word is unused, as trace_at 0 is
  // "nowhere".
  mapped_list<std::uint64_t> traces_;
  nanos taken_at_ = 0;
  stacks stacks_ = stacks::none;
};

}  // namespace weft::rt
