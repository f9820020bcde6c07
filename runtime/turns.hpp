// For how long a thread computes before the kernel turns to the next one that waits for the processor (EEVDF's slice).
// Who takes short turns gets no more of the processor, but gets its share sooner when it wakes beside threads with
// longer ones: it may end their turn. Linux 6.12 and later; before, nothing happens.
#pragma once

namespace weft::rt {

// tid 0: the calling thread. Only of threads under the kernel's normal policies; a refusal is silent.
void take_short_turns(int tid) noexcept;
void take_usual_turns(int tid) noexcept;
void take_long_turns(int tid) noexcept;

}  // namespace weft::rt
