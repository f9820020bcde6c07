// Sets for how long a thread computes before the kernel turns to the next one that waits for the processor (EEVDF's
// slice). A thread with short slices gets no more of the processor, but gets its share sooner when it wakes beside
// threads with longer slices, because it may cut those short. Before Linux 6.12 nothing happens.
#pragma once

namespace weft::rt {

// tid 0 is the calling thread. These affect only threads under the kernel's normal policies; a refusal is silent.
void use_short_slices(int tid) noexcept;
void use_usual_slices(int tid) noexcept;
void use_long_slices(int tid) noexcept;

}  // namespace weft::rt
