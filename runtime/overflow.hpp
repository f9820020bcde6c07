// Recognises a goroutine that ran over its stack: a fault whose address lies in a guard page of ours.
#pragma once

namespace weft::rt {

// Installs the SIGSEGV handler, if it is not there. Faults that are not a goroutine's overflow go to the handler that
// was there before; if that one passes them back to ours, to what was there before it. std::bad_alloc. One thread at a
// time.
void install_overflow_handler();

// Gives the calling thread a stack for signals, if it has none: on a stack that ran over no handler can run.
void* make_signal_stack() noexcept;
void free_signal_stack(void* stack) noexcept;

}  // namespace weft::rt
