// The jump from one stack to another. Its only user is the switch (context.hpp).
//
//   make_context<First>(top, floating)   the context of a new stack that ends at `top`: the first jump there calls
//                                        First with the parts of its departure; First must not return
//   jump(d, save, to)                    leaves this stack, whose context goes to `save`, for `to`. Returns when
//                                        another stack jumps back, with that jump's departure
//
// On x86-64 the jump is our own, elsewhere it is Boost.Context's: docs/adr/0010-jump-without-a-call.md.
#pragma once

#include "runtime/g.hpp"
#include "runtime/sanitizer.hpp"

#include <cstddef>

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace weft::rt {

// What the side that leaves passes to the side that arrives.
struct departure {
  thread_state* thread;
  G* from;
  void (*after)(G* from, void* arg);
  void* arg;
};

using first_function = void (*)(thread_state*, G* from, void (*after)(G*, void*), void* arg);

#if defined(__x86_64__)

// A context is the stack pointer, which points at a saved_context. The other registers that a callee saves are in the
// frame of switch_to, because the jump declares that it clobbers them. The departure travels in the registers of a
// function's first four arguments.
struct saved_context {
  float_control floating;
  void* frame;
  const void* resume_at;
};

// What a frame pointer points at.
struct frame_record {
  frame_record* caller;
  const void* return_address;
};

// Below the end of the stack are the record of a frame that nobody called, and First's return address, also null. A
// profiler's signal may come when the frame pointer has been loaded, and the jump to First is yet to be made: an
// unwinder then takes that record for the frame of the function with the jump, and finds no caller.
template <first_function First>
void* make_context(std::byte* top, float_control floating) noexcept {
  auto* outermost = reinterpret_cast<frame_record*>(top) - 1;
  *outermost = {nullptr, nullptr};
  auto* return_address = reinterpret_cast<void**>(outermost) - 1;
  *return_address = nullptr;
  auto* c = reinterpret_cast<saved_context*>(return_address) - 1;
  *c = {floating, outermost, reinterpret_cast<const void*>(First)};
  return c;
}

#if !defined(WEFT_NO_RED_ZONE)
#error "The jump writes right below the stack pointer: compile with -mno-red-zone -DWEFT_NO_RED_ZONE."
#endif

WEFT_NO_FAKE_STACK inline departure jump(departure d, void*& save, void* to) noexcept {
  static_assert(sizeof(saved_context) == 24);
  void** where = &save;  // an output, too: the register holds something else when another stack jumps back
  asm volatile(
      "lea -24(%%rsp), %%rsp\n\t"
      "lea 1f(%%rip), %%r8\n\t"
      "stmxcsr (%%rsp)\n\t"
      "fnstcw 4(%%rsp)\n\t"
      "mov %%rbp, 8(%%rsp)\n\t"
      "mov %%r8, 16(%%rsp)\n\t"
      "mov %%rsp, (%[save])\n\t"
      "mov %%rax, %%rsp\n\t"
      "ldmxcsr (%%rsp)\n\t"
      "fldcw 4(%%rsp)\n\t"
      "mov 8(%%rsp), %%rbp\n\t"
      "mov 16(%%rsp), %%r8\n\t"
      "lea 24(%%rsp), %%rsp\n\t"
      "jmp *%%r8\n"
      "1:"
      : "+D"(d.thread), "+S"(d.from), "+d"(d.after), "+c"(d.arg), "+a"(to), [save] "+r"(where)
      :
      : "rbx", "r8", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc", "memory");
  return d;
}

#else

// The floating-point control belongs to the thread here: float_control is empty.

WEFT_NO_FAKE_STACK inline departure departed(boost::context::detail::transfer_t t) noexcept {
  departure d = *static_cast<departure*>(t.data);
  d.from->context = t.fctx;
  return d;
}

template <first_function First>
void* make_context(std::byte* top, float_control) noexcept {
  auto first = [](boost::context::detail::transfer_t t) {
    departure d = departed(t);
    First(d.thread, d.from, d.after, d.arg);
  };
  return boost::context::detail::make_fcontext(top, 0, first);  // make_fcontext does not use the size
}

WEFT_NO_FAKE_STACK inline departure jump(departure d, void*&, void* to) noexcept {
  return departed(boost::context::detail::jump_fcontext(to, &d));
}

#endif

}  // namespace weft::rt
