#include "sched/snapshot.hpp"

#include "runtime/g_pool.hpp"
#include "sched/syscall.hpp"

#include <cstring>

namespace weft::rt {

namespace {

bool is_shown(const G* g) noexcept {
  g_state s = g->state.load(acquire);  // see G::set_state, as below
  return s != g_state::idle && s != g_state::dead && s != g_state::abandoned && !g->is_system();
}

std::size_t count_shown() noexcept {
  std::size_t n = 0;
  for_each_g([](G* g, void* arg) { *static_cast<std::size_t*>(arg) += is_shown(g); }, &n);
  return n;
}

constexpr std::size_t longest_trace = 2 + trace::inner + trace::outer;

}  // namespace

std::uint64_t seen_goroutine::key_with(std::uint64_t trace_hash) const noexcept {
  std::uint64_t key = trace_hash;
  key = hash_on(key, static_cast<std::uint64_t>(state));
  key = hash_on(key, static_cast<std::uint64_t>(reason));
  key = hash_on(key, static_cast<std::uint64_t>(marks & mark::tied));
  return hash_on(key, reinterpret_cast<std::uintptr_t>(spawn_pc));
}

class snapshot_taker {
 public:
  snapshot_taker(snapshot* s, const G* except) noexcept : s_(s), except_(except) {}

  void add(const G* g) noexcept {
    if (g == except_ || !is_shown(g)) return;
    seen_goroutine seen{};
    seen.id = g->id;
    seen.wait_since = g->wait_since.load(acquire);  // before the state: start_timing
    seen.state = g->state.load(acquire);
    seen.reason = g->reason;
    seen.marks = g->marks();
    seen.spawn_pc = g->spawn_pc;
    std::memcpy(seen.name, g->name, sizeof seen.name);
    trace_.size = trace_.left_out = 0;
    if (seen.state == g_state::syscall) {
      seen.begun = true;
      if (s_->stacks_ == stacks::of_all) trace_in_syscall(g, &trace_);
    } else if (s_->has_stacks() && seen.state != g_state::running) {
      seen.begun = g->park_frame != nullptr;
      trace_parked(g, &trace_);
    }
    seen.key = seen.key_with(hash_places(trace_, 0, trace_.left_out));
    seen.trace_at = keep_trace(seen.key);
    s_->goroutines_.add(seen);
  }

 private:
  std::size_t keep_trace(std::uint64_t key) noexcept {
    if (trace_.size == 0) return 0;
    known& k = known_[key % std::size(known_)];
    if (k.key == key && k.at != 0) return k.at;
    mapped_list<std::uint64_t>& words = s_->traces_;
    if (words.room_left() < longest_trace) return 0;
    k = {key, words.all().size()};
    words.add(trace_.size);
    words.add(trace_.left_out);
    for (std::size_t i = 0; i < trace_.size; ++i) words.add(reinterpret_cast<std::uintptr_t>(trace_.frames[i].pc));
    return k.at;
  }

  snapshot* s_;
  const G* except_;
  trace trace_;
  struct known {
    std::uint64_t key = 0;
    std::size_t at = 0;
  };
  known known_[64];
};

void snapshot::take(const G* except, stacks which) noexcept {
  taken_at_ = nanotime();
  stacks_ = which;
  const std::size_t n = count_shown();
  goroutines_ = mapped_list<seen_goroutine>(n);
  if (has_stacks()) traces_ = mapped_list<std::uint64_t>(1 + n * longest_trace);
  traces_.add(0);
  snapshot_taker taker(this, except);
  for_each_g([](G* g, void* arg) { static_cast<snapshot_taker*>(arg)->add(g); }, &taker);
}

void snapshot::get_trace(const seen_goroutine& g, trace* out) const noexcept {
  out->size = out->left_out = 0;
  if (g.trace_at == 0) return;
  std::span<const std::uint64_t> w = traces_.all().subspan(g.trace_at);
  out->size = w[0];
  out->left_out = w[1];
  for (std::size_t i = 0; i < out->size; ++i) out->frames[i] = {reinterpret_cast<const void*>(w[2 + i]), true};
}

}  // namespace weft::rt
