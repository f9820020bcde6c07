// The end of an exception that nobody catches: the report, then std::terminate.
//
// The C++ runtime unwinds in two phases. It first looks for a handler, and leaves frames only if there is one. In that
// first phase, a `catch (unhandled&)` at the bottom of a goroutine is asked whether it is a handler, after every other
// handler of the goroutine was asked. So nobody else catches the exception, and its frames are all still there. The
// question, type_info::__do_catch of the type in the clause, is where the report is made, with the trace of the throw.
// The answer is no. So there is no handler, and std::terminate is called in `throw`, as for a thread, and a core file
// or a debugger shows where that was. Only while another goroutine's exit() is under way is the answer yes, without a
// report, and the exception just ends its goroutine (sched/process_exit.hpp).
//
// libc++'s type_info has no such function. There a goroutine catches everything at its bottom (go.cpp), and the report
// is made without the trace of the throw.

#include "api/src/goroutine.hpp"
#include "runtime/fatal.hpp"
#include "runtime/report.hpp"
#include "runtime/roomy_stack.hpp"
#include "runtime/thread.hpp"
#include "sched/enter.hpp"
#include "sched/process_exit.hpp"

#include <cstring>
#include <cxxabi.h>
#include <string>
#include <typeinfo>
#include <unistd.h>
#include <utility>

namespace weft::detail {

namespace {

enum class thrown_at : bool { elsewhere, in_this_stack };

#if !defined(_LIBCPP_VERSION)

// True for the functions of the C++ runtime in which an exception sets out or ends.
bool throws(const char* function) noexcept {
  for (const char* name : {"__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate",
                           "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", "_ZSt9terminatev"}) {
    if (function && std::strcmp(function, name) == 0) return true;
  }
  return false;
}

// Writes the trace of the throw, without the unwinder's frames if they are found.
void write_throw_site(rt::report& out) noexcept {
  rt::trace* t = out.scratch();
  if (!t) return;
  rt::trace_here(t, 2);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < t->size && i < 16; ++i) {
    if (throws(out.symbol_of(t->frames[i]).function)) begin = i + 1;
  }
  std::copy(t->frames + begin, t->frames + t->size, t->frames);
  t->size -= begin;
  out.frames(*t);
}

#else

void write_throw_site(rt::report&) noexcept {}

#endif

WEFT_NOINLINE void write_report(const std::type_info* type, const char* what, thrown_at where,
                                const rt::G* g) noexcept {
  rt::report out(STDERR_FILENO, rt::names::demangled);
  out.line("goroutine {}: uncaught exception of type {}: {}", rt::goroutine_name(g),
           type ? out.readable(type->name()) : "(unknown)", what ? what : "(not a std::exception)");
  if (where == thrown_at::in_this_stack) write_throw_site(out);
  out.started_by(g->spawn_pc);
}

// What was done about an exception that no handler of a goroutine catches. The goroutine may go on on another thread
// meanwhile, as the program's terminate handler may wait, and others may come to their end beside it. Of more than
// `enough` at once, the rest go by their threads.
struct last_steps {
  rt::atomic<const rt::G*> of{nullptr};
  bool reported = false, terminates = false;
};

last_steps& steps_of(const rt::G* g) noexcept {
  constexpr std::size_t enough = 64;
  static constinit last_steps all[enough];
  static constinit thread_local last_steps of_this_thread;
  for (last_steps& s : all) {
    const rt::G* who = s.of.load(rt::relaxed);  // relaxed: each goroutine looks for itself only
    if (who == g || (!who && s.of.compare_exchange_strong(who, g, rt::relaxed, rt::relaxed))) return s;
  }
  return of_this_thread;
}

void report_uncaught(const std::type_info* type, const char* what, thrown_at where,
                     const rt::G* left = nullptr) noexcept {
  const rt::G* const self = rt::this_thread()->g;
  const rt::G* g = left ? left : self;
  steps_of(self).reported = true;  // std::terminate follows
  rt::on_roomy_stack([=] { write_report(type, what, where, g); });
}

const char* what_of(const std::exception& e) noexcept {
  const char* what = e.what();
  return what ? what : "(its what() is null)";
}

#if !defined(_LIBCPP_VERSION)

// `object` points to what was thrown, of type `type`. Returns null if that is not a std::exception.
const char* what_of(const std::type_info* type, void* object) noexcept {
  if (!typeid(std::exception).__do_catch(type, &object, 1)) return nullptr;  // now it points to the base
  return what_of(*static_cast<std::exception*>(object));
}

#endif

}  // namespace

#if !defined(_LIBCPP_VERSION)

// Not in the unnamed namespace, which would hide the object below from other files.
class unhandled_type final : public std::type_info {
 public:
  unhandled_type() noexcept : std::type_info("N4weft6detail9unhandledE") {}

 private:
  bool __do_catch(const std::type_info* type, void** object, unsigned) const override {
    const bool is_forced = *type == typeid(abi::__forced_unwind);
    if (rt::process_exits() && !is_forced) return true;
    report_uncaught(type, what_of(type, *object), thrown_at::in_this_stack);
    // pthread_exit() and pthread_cancel() do not look for a handler, and would end a thread of the runtime. Who throws
    // in another language may go on if nobody catches that.
    if (is_forced || *type == typeid(abi::__foreign_exception)) std::terminate();
    return false;
  }
};

// The compiler refers to typeid(unhandled) by this name; unhandled's virtual destructor is defined nowhere.
extern unhandled_type type_of_unhandled __asm__("_ZTIN4weft6detail9unhandledE");
WEFT_EARLY_OBJECT unhandled_type type_of_unhandled;

#else

unhandled::~unhandled() = default;

#endif

namespace {

// e is null if the exception is of another language.
void report_exception(const std::exception_ptr& e, thrown_at where, const rt::G* left = nullptr) noexcept {
  if (!e) return report_uncaught(nullptr, "an exception of another language", where, left);
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    report_uncaught(abi::__cxa_current_exception_type(), what_of(x), where, left);
  } catch (...) {
    report_uncaught(abi::__cxa_current_exception_type(), nullptr, where, left);
  }
}

constinit rt::atomic<std::terminate_handler> handler_before{nullptr};

// An exception may meet a `noexcept` on its way, such as that of a stop callback or a destructor. Then the search for a
// handler ends there, and the handler at the bottom of the goroutine is not asked. The report is made here instead.
//
// Several goroutines may come here, as several threads may. The program's handler may wait, and go on on another
// thread.
[[noreturn]] void report_and_terminate() noexcept {
  last_steps& mine = steps_of(rt::this_thread()->g);
  if (std::exchange(mine.terminates, true)) std::abort();  // the program's handler throws, or calls this one
  std::exception_ptr e = std::current_exception();
  if (rt::this_m() && !mine.reported && e) report_exception(e, thrown_at::in_this_stack);
  handler_before.load(rt::relaxed)();
  std::abort();
}

}  // namespace

terminate_watch::terminate_watch() noexcept {
  // The handler that was set before may be ours: the program set its own during an earlier run(), and later put ours
  // back.
  const std::terminate_handler h = std::set_terminate(report_and_terminate);
  if (h != report_and_terminate) handler_before.store(h, rt::relaxed);
}

terminate_watch::~terminate_watch() {
  if (std::get_terminate() == report_and_terminate) std::set_terminate(handler_before.load(rt::relaxed));
}

void die_of_exception(const std::exception_ptr& e, const rt::G* left) noexcept {
  if (rt::process_exits()) return;
  report_exception(e, thrown_at::elsewhere, left);
  if (!e) std::terminate();
  // The user's terminate handler finds the exception as the current one.
  try {
    std::rethrow_exception(e);
  } catch (...) {
    std::terminate();
  }
}

}  // namespace weft::detail
