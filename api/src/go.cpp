#include "weft/go.hpp"

#include "api/src/goroutine.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"
#include "sched/spawn.hpp"
#include "weft/runtime.hpp"
#include "weft/task.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {

namespace detail {

namespace {

// --- goroutine-local variables: a short list, looked up by the address of the local<T>

struct local_value {
  const void* key;
  void* value;
  void (*destroy)(void*) noexcept;
};
using local_list = std::vector<local_value>;

void destroy_locals(rt::G* g) noexcept {
  constexpr std::size_t most_made_meanwhile = 1024;
  // A destructor may use other locals, which makes them. The last one made is destroyed first.
  std::size_t left = static_cast<local_list*>(g->locals)->size() + most_made_meanwhile;
  while (auto* list = static_cast<local_list*>(g->locals)) {
    if (list->empty()) {
      delete list;
      g->locals = nullptr;
      return;
    }
    if (left-- == 0) {
      rt::fatal("goroutine {}: the destructors of local<T>s have made {} more of them: they use each other", g->id,
                most_made_meanwhile);
    }
    local_value v = list->back();
    list->pop_back();
    v.destroy(v.value);
  }
}

rt::G* this_goroutine_or_throw(const char* what) {
  rt::G* g = rt::this_thread()->g;
  if (g->kind != rt::g_kind::goroutine) {
    throw std::logic_error(std::string("weft: ") + what + " may be used by goroutines only");
  }
  return g;
}

// Runs the user's code, and handles every way in which it can end. Neither this function nor any below it on the stack
// is noexcept: that would count as a handler.
void run_user_code(void* closure) {
  rt::G* g = rt::this_thread()->g;
  try {
    g->user_entry(closure);
  } catch (const goroutine_exit& e) {
    e.has_arrived();
  } catch (const unhandled&) {
    // It is told of what nobody catches, and catches it only while the process exits (uncaught.cpp).
#if defined(_LIBCPP_VERSION)
  } catch (...) {
    die_of_exception(std::current_exception());
#endif
  }
  if (g->locals) destroy_locals(g);
  g->set_mark(rt::mark::ended);
}

void set_name(rt::G* g, std::string_view name) noexcept {
  std::size_t n = std::min(name.size(), sizeof g->name - 1);
  if (n < name.size()) {
    while (n > 0 && (static_cast<unsigned char>(name[n]) & 0xc0) == 0x80) --n;  // not in the midst of a UTF-8 character
  }
  name.copy(g->name, n);
  g->name[n] = '\0';
  g->set_mark(rt::mark::uses_seldom);
}

}  // namespace

WEFT_NOINLINE new_goroutine begin_goroutine(const go_options& o, std::size_t size, std::size_t align, const char* what,
                                            const void* start) {
  rt::throw_if_not_running(what);
  rt::G* g = rt::spawn_begin(o.stack_size);
  g->spawn_pc = start;
  if (!o.name.empty()) set_name(g, o.name);
  try {
    return {g, rt::closure_room(g, size, align)};
  } catch (...) {
    rt::spawn_abort(g);
    throw;
  }
}

new_goroutine spawn_begin(const go_options& o, std::size_t size, std::size_t align, const char* what) {
  return spawn_begin_at(__builtin_return_address(0), o, size, align, what);
}

void spawn_abort(new_goroutine g) noexcept { rt::spawn_abort(static_cast<rt::G*>(g.handle)); }

void spawn_commit(new_goroutine ng, void (*entry)(void*)) noexcept {
  auto* g = static_cast<rt::G*>(ng.handle);
  g->user_entry = entry;
  g->entry = run_user_code;
  rt::spawn_commit(g);
}

void end_locals() noexcept {
  rt::G* g = rt::this_thread()->g;
  if (g->locals) destroy_locals(g);
}

void* local_find(const void* key) {
  auto* list = static_cast<local_list*>(this_goroutine_or_throw("local<T>")->locals);
  if (!list) return nullptr;
  for (const local_value& v : *list) {
    if (v.key == key) return v.value;
  }
  return nullptr;
}

void local_insert(const void* key, void* value, void (*destroy)(void*) noexcept) {
  rt::G* g = this_goroutine_or_throw("local<T>");
  if (!g->locals) g->locals = new local_list;
  static_cast<local_list*>(g->locals)->push_back({key, value, destroy});
}

void goroutine_exit::was_swallowed() const noexcept {
  rt::fatal("goroutine {}: exit_goroutine()'s exception was caught and not thrown on: `catch (...)` has to rethrow it",
            thrown_in_);
}

}  // namespace detail

void exit_goroutine() { throw detail::goroutine_exit{detail::this_goroutine_or_throw("exit_goroutine")->id}; }

namespace this_goroutine {

namespace {
rt::G* current() noexcept {
  rt::thread_state* ts = rt::this_thread_or_null();
  return ts && ts->g->kind == rt::g_kind::goroutine ? ts->g : nullptr;
}
}  // namespace

std::uint64_t id() noexcept {
  rt::G* g = current();
  return g ? g->id : 0;
}

std::string name() {
  rt::G* g = current();
  return g ? std::string(g->name) : std::string();
}

void set_name(std::string_view name) noexcept {
  // Inside the runtime the P cannot be taken: a thread that has taken this goroutine's P may read the name.
  rt::runtime_scope scope;
  if (rt::G* g = current()) detail::set_name(g, name);
}

}  // namespace this_goroutine
}  // namespace weft
