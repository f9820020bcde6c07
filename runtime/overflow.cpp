#include "runtime/overflow.hpp"

#include "runtime/report.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

#include <csignal>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace weft::rt {

namespace {

constexpr std::size_t signal_stack_size = 64 * 1024;

struct sigaction previous;

// On the signal's stack, and of the heap nothing is known: the goroutine may have been in malloc.
void report_overflow(const G* g, void* context) noexcept {
  report out(STDERR_FILENO, names::mangled);
  out.line("goroutine {}: stack overflow", g->id);
  if (*g->name) out.line("    named '{}'", g->name);
  out.line("    its stack has {} bytes; go({{.stack_size = n}}, f) gives it more", stack_size_of(g->own_stack->origin));
  if (trace* t = out.scratch()) {
    trace_context(context, t);
    out.frames(*t);
  }
  out.started_by(g);
}

// The goroutine of this thread, if it ran beyond its stack: over a guard, or as it has none. What it met there is
// another goroutine's, so this is asked first.
const G* goroutine_beyond_its_stack(const void* context) noexcept {
  const thread_state* ts = this_thread_or_null();
  if (!ts || ts->g->kind != g_kind::goroutine) return nullptr;
  const auto& at = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  auto sp = static_cast<std::uintptr_t>(at.gregs[REG_RSP]);
#else
  auto sp = static_cast<std::uintptr_t>(at.sp);
#endif
  return stack_is_left(ts->g, sp) ? ts->g : nullptr;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const G* g = goroutine_beyond_its_stack(context);
  if (!g) g = stack_guard_owner(info->si_addr);
  if (g) {
    report_overflow(g, context);
    ::signal(SIGSEGV, SIG_DFL);  // the instruction runs again and the process dies of it
    return;
  }
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    const bool sent = info->si_code <= 0;  // by raise or kill: there is no instruction that runs again
    if (sent && previous.sa_handler == SIG_IGN) return;
    ::sigaction(SIGSEGV, &previous, nullptr);
    if (sent) ::raise(signal);
  } else {
    previous.sa_handler(signal);
  }
}

}  // namespace

void install_overflow_handler() noexcept {
  struct sigaction action {};
  ::sigaction(SIGSEGV, nullptr, &action);
  if ((action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_fault) return;
  prepare_traces();
  previous = action;
  action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

void* make_signal_stack() noexcept {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE)) return nullptr;
  void* p =
      ::mmap(nullptr, signal_stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  stack_t mine{};
  mine.ss_sp = p;
  mine.ss_size = signal_stack_size;
  ::sigaltstack(&mine, nullptr);
  return p;
}

void free_signal_stack(void* stack) noexcept {
  if (!stack) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
  ::munmap(stack, signal_stack_size);
}

}  // namespace weft::rt
