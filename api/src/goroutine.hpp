// How a goroutine's user code is run: shared by go.cpp, task.cpp and runtime.cpp.
#pragma once

#include "sched/spawn.hpp"
#include "weft/go.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>

namespace weft::detail {

// Thrown by exit_goroutine. Deliberately not derived from std::exception: only `catch (...)` sees it. If the user's
// code keeps it from reaching the goroutine's end, was_swallowed reports that as soon as nothing refers to it any more.
class goroutine_exit {
 public:
  explicit goroutine_exit(std::uint64_t g) noexcept : thrown_in_(g) {}
  ~goroutine_exit() {
    if (!arrived_) was_swallowed();
  }
  void has_arrived() const noexcept { arrived_ = true; }

 private:
  [[noreturn]] void was_swallowed() const noexcept;

  std::uint64_t thrown_in_;  // the goroutine's number: another one may hold the last reference
  mutable bool arrived_ = false;
};

// Does what spawn_begin does, for most goroutines and without a call. Null: nothing has happened.
inline rt::G* try_begin(const go_options& o, std::size_t size, std::size_t align, const void* start) noexcept {
  if (o.stack_size != 0 || !o.name.empty() || !rt::fits_header(size, align)) return nullptr;
  rt::G* g = rt::try_spawn_begin();
  if (WEFT_UNLIKELY(!g)) return nullptr;
  g->spawn_pc = start;
  g->closure = g->small_closure;
  return g;
}

// The same for every goroutine. Throws instead of returning null.
new_goroutine begin_goroutine(const go_options& o, std::size_t size, std::size_t align, const char* what,
                              const void* start);

// spawn_begin, for a goroutine that counts as started at `start`.
inline new_goroutine spawn_begin_at(const void* start, const go_options& o, std::size_t size, std::size_t align,
                                    const char* what) {
  if (rt::G* g = try_begin(o, size, align, start)) return {g, g->closure};
  return begin_goroutine(o, size, align, what, start);
}

// `catch (const unhandled&)` reports what no handler of the goroutine catches, and catches it only while the process
// exits (uncaught.cpp).
struct unhandled {
  virtual ~unhandled();
};

// Reports an exception that left the goroutine `left` (null: the calling one), then calls std::terminate. Returns if
// the process exits.
void die_of_exception(const std::exception_ptr& e, const rt::G* left = nullptr) noexcept;

// While it lives, an exception of a goroutine that meets a `noexcept` is reported, too. The report comes before the
// program's terminate handler is called, unless the program sets one meanwhile.
class terminate_watch {
 public:
  terminate_watch() noexcept;
  ~terminate_watch();
  terminate_watch(const terminate_watch&) = delete;
  terminate_watch& operator=(const terminate_watch&) = delete;
};

}  // namespace weft::detail
