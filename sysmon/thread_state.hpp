// Whether another thread of this process computes or sleeps in the kernel.
#pragma once

namespace weft::rt {

// True: it runs or waits for a processor. False: it sleeps, or cannot be looked at. Some 10 µs.
bool thread_wants_processor(int tid) noexcept;

}  // namespace weft::rt
