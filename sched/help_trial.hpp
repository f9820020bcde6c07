// Trials: does one P alone do as much as two, or as all (help_trial.cpp)?
#pragma once

#include <cstdint>

namespace weft::rt {

// What all Ps together have done up to some time.
struct work_done {
  std::uint64_t at = 0;          // cpu_ticks
  std::uint64_t dispatches = 0;  // goroutines that were run
  std::uint64_t values = 0;      // values that went through channels without a wait
  std::uint64_t collisions = 0;  // of two Ps at a channel
  std::uint32_t readied = 0;     // goroutines that were put into rings; it wraps around
  std::uint32_t busy_ps = 0;     // Ps that did not idle at that time
};
work_done work_done_now() noexcept;

// What one M finds out. It does not know what other Ms find out.
class help_trial {
 public:
  // Called when the M is about to doze. True: it stays away, whatever is ready, until somebody rouses it.
  bool begin_doze(const work_done& now) noexcept;

  // Called when the M is away, and nobody has roused it for as long as a doze takes. True: it stays away for longer.
  bool stays_away(const work_done& now) noexcept;

  bool is_away() const noexcept { return phase_ != phase::helps; }

  // Of an M that is away: true if all other Ms but one shall give their Ps up, too.
  bool is_of_all() const noexcept { return of_all_; }

  // Called when the M holds a P, and collides with others. leaves() is asked only if may_leave() is true: that costs
  // less. If leaves() is true, the M gives its P up, and dozes.
  bool may_leave(std::uint64_t at) const noexcept;
  bool leaves(const work_done& now) noexcept;

 private:
  struct difference;
  enum class phase : std::uint8_t { helps, settles, without, of_no_use };

  void begin(phase p, const work_done& now) noexcept;
  void begin_trial(double with, bool of_all, const work_done& now) noexcept;
  bool others_still_leave(const work_done& now) const noexcept;
  void comes_for_long(const work_done& now) noexcept;
  void goes_on_after(const difference& d, const work_done& now) noexcept;
  void judge(const work_done& now) noexcept;

  phase phase_ = phase::helps;
  std::uint32_t dozes_ = 0;  // in this phase
  std::uint32_t slow_ = 0;   // looks in a row that saw less done
  std::uint32_t early_ = 0;  // looks at which others had not left yet
  bool of_all_ = false;
  work_done began_;     // when this phase began, or at its last look
  work_done collided_;  // when the M began to look at collisions
  double with_ = 0, without_ = 0;
  // In cpu_ticks: when the trial began; until when the last verdict holds; and for how long, if it says that help
  // helps.
  std::uint64_t tried_at_ = 0, until_ = 0, holds_ = 0;
};

}  // namespace weft::rt
