#include "runtime/overflow.hpp"

#include "runtime/atomic.hpp"
#include "runtime/report.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

#include <algorithm>
#include <csignal>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace weft::rt {

namespace {

// A SIGSEGV handler that was installed when a run() began. Each different one is here once and for good, because other
// threads may be in on_fault. Threads that call run() write these, one after the other.
struct handler {
  struct sigaction action;
  atomic<const handler*> below{nullptr};  // the one before it; null: nothing comes after it
  handler* next_known = nullptr;
  mutable atomic<bool> spent{false};  // it asked to be called once (SA_RESETHAND), and was
};

handler* all_known = nullptr;
atomic<const handler*> newest{nullptr};  // partner: on_fault, also for `below`

// A handler that the user installs during a run() has on_fault as its previous handler. When the next run() puts
// on_fault back on top, each of the two is the other's previous handler. So a thread notes which handler has got the
// fault that it handles, and marks the fault's context. If that handler calls on_fault for the same fault, the next
// handler below gets it. A handler may also leave by a jump; then the next fault's context may lie at the same place,
// but it has no mark.
//
// A signal handler is never suspended, so it stays on one thread, and uses the thread-local of that thread only.
thread_local constinit const handler* in_hand __attribute__((tls_model("initial-exec"))) = nullptr;

// The mark. The kernel sets uc_link to null when it makes a context, and does not read it.
bool is_passed_back(const ucontext_t& context) noexcept {
  return context.uc_link == reinterpret_cast<const ucontext_t*>(&in_hand);
}
void mark_passed(ucontext_t& context) noexcept { context.uc_link = reinterpret_cast<ucontext_t*>(&in_hand); }

// Runs on the signal stack. Nothing is known about the heap: the goroutine may have been in malloc.
void report_overflow(const G* g, void* context) noexcept {
  report out(STDERR_FILENO, names::mangled);
  out.line("goroutine {}: stack overflow", g->id);
  if (*g->name) out.line("    named {}", quoted_name{g->name});
  out.line("    its stack has {} bytes; go({{.stack_size = n}}, f), or options::stack_size for main, gives it more",
           stack_size_of(g->own_stack->origin));
  if (trace* t = out.scratch()) {
    trace_context(context, t);
    out.frames(*t);
  }
  out.started_by(g->spawn_pc);
}

// Reports an access by a stray pointer, which a guard page stopped.
void report_stray_access(const G* owner, void* context) noexcept {
  report out(STDERR_FILENO, names::mangled);
  const thread_state* ts = this_thread_or_null();
  if (ts && ts->g->kind == g_kind::goroutine) {
    out.line("goroutine {} accessed the guard page below the stack of goroutine {}:", goroutine_name(ts->g),
             goroutine_name(owner));
  } else {
    out.line("a thread accessed the guard page below the stack of goroutine {}:", goroutine_name(owner));
  }
  if (trace* t = out.scratch()) {
    trace_context(context, t);
    out.frames(*t);
  }
}

bool is_in(const stack_t& stack, std::uintptr_t sp) noexcept {
  return (stack.ss_flags & SS_DISABLE) == 0 && sp - reinterpret_cast<std::uintptr_t>(stack.ss_sp) < stack.ss_size;
}

// True if the kernel found no room for the frame of a signal whose handler runs on the goroutine's own stack. It sends
// a SIGSEGV instead, which belongs to no instruction.
bool signal_found_no_room(const siginfo_t* info, const G* g, std::uintptr_t sp) noexcept {
  constexpr std::size_t red_zone = 128, least = 4096;
  const std::size_t frame = std::max<std::size_t>(::getauxval(AT_MINSIGSTKSZ), least) + red_zone;
  return info->si_code == SI_KERNEL && sp - reinterpret_cast<std::uintptr_t>(g->own_stack->lo) < frame;
}

// Returns the goroutine of this thread if it ran beyond its stack: past a guard, or because it has none. The memory
// that it met there belongs to another goroutine, so this is asked first.
const G* goroutine_beyond_its_stack(const siginfo_t* info, const void* context) noexcept {
  const thread_state* ts = this_thread_or_null();
  if (!ts || ts->g->kind != g_kind::goroutine) return nullptr;
  const auto& of = *static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  auto sp = static_cast<std::uintptr_t>(of.uc_mcontext.gregs[REG_RSP]);
#else
  auto sp = static_cast<std::uintptr_t>(of.uc_mcontext.sp);
#endif
  if (is_in(of.uc_stack, sp)) return nullptr;  // a signal handler's fault
  const void* touched = info->si_code > 0 ? info->si_addr : nullptr;
  return stack_is_left(ts->g, sp, touched) || signal_found_no_room(info, ts->g, sp) ? ts->g : nullptr;
}

bool has(const struct sigaction& action, unsigned flag) noexcept {
  return (static_cast<unsigned>(action.sa_flags) & flag) != 0;
}

// From here on the signal ends the process: when on_fault returns, the instruction runs again and meets the same fault.
// Where none does, because the signal was sent, or comes from the kernel itself, it is raised again; it is blocked
// until on_fault returns.
void end_by_default(int signal, const siginfo_t* info) noexcept {
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0 || info->si_code == SI_KERNEL) ::raise(signal);
}

// Calls a handler with the signal mask that the kernel would give it.
void call(const struct sigaction& to, int signal, siginfo_t* info, void* context) {
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &to.sa_mask, &before);  // its own signal is blocked in on_fault
  if (has(to, SA_NODEFER) && !sigismember(&to.sa_mask, signal)) {
    sigset_t again;
    sigemptyset(&again);
    sigaddset(&again, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
  }
  if (has(to, SA_SIGINFO)) {
    to.sa_sigaction(signal, info, context);
  } else {
    to.sa_handler(signal);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void pass_to(const handler* next, int signal, siginfo_t* info, void* context) {
  struct sigaction to {};  // the default
  if (next) to = next->action;
  if (has(to, SA_RESETHAND) && next->spent.exchange(true, relaxed)) to = {};
  if (has(to, SA_SIGINFO)) {
    call(to, signal, info, context);
  } else if (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN) {
    const bool sent = info->si_code <= 0;
    if (sent && to.sa_handler == SIG_IGN) return;
    end_by_default(signal, info);  // a fault cannot be ignored
  } else {
    call(to, signal, info, context);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const G* beyond = goroutine_beyond_its_stack(info, context);
  const G* owner = beyond ? beyond : stack_guard_owner(info->si_addr);
  if (owner) {
    const thread_state* ts = this_thread_or_null();
    ts && ts->g == owner ? report_overflow(owner, context) : report_stray_access(owner, context);
    end_by_default(signal, info);
    return;
  }
  auto& of = *static_cast<ucontext_t*>(context);
  const handler* outer = in_hand;
  const handler* next = is_passed_back(of) ? outer->below.load(acquire) : newest.load(acquire);
  in_hand = next;
  mark_passed(of);
  pass_to(next, signal, info, context);
  in_hand = outer;
}

bool same(const struct sigaction& a, const struct sigaction& b) noexcept {
  return a.sa_handler == b.sa_handler && has(a, SA_SIGINFO) == has(b, SA_SIGINFO) &&
         has(a, SA_RESETHAND) == has(b, SA_RESETHAND);
}

handler* known(const struct sigaction& action) {
  for (handler* h = all_known; h; h = h->next_known) {
    if (!same(h->action, action)) continue;
    h->spent.store(false, relaxed);
    return h;
  }
  return all_known = new handler{action, nullptr, all_known};
}

bool passes_on(const struct sigaction& action) noexcept {
  return has(action, SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

void put_on_top(const struct sigaction& action) {
  handler* h = known(action);
  const handler* top = newest.load(relaxed);
  const handler* at = top;
  while (at && at != h) at = at->below.load(relaxed);
  // A handler that is already in the chain stays where it is, so that there is no circle.
  if (!at) h->below.store(passes_on(action) ? top : nullptr, release);
  newest.store(h, release);
}

}  // namespace

void install_overflow_handler() {
  struct sigaction action {};
  ::sigaction(SIGSEGV, nullptr, &action);
  if (has(action, SA_SIGINFO) && action.sa_sigaction == on_fault) return;
  prepare_traces();
  put_on_top(action);
  action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

bool signal_stack::reserve() noexcept {
  errno_stays keep;
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  memory_ = p;
  return true;
}

void signal_stack::use() const noexcept {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE)) return;
  stack_t mine{};
  mine.ss_sp = memory_;
  mine.ss_size = size;
  ::sigaltstack(&mine, nullptr);
}

}  // namespace weft::rt
