// What the end of a run() does for cancel()s of its goroutines: "unfinished" in context.cpp.
#pragma once

namespace weft::detail {

class cancel_node;

// Called when no goroutine runs any more that is not left behind, and before another run() may begin. Returns what
// finish_cancels is to be given.
cancel_node* take_cancels_of_goroutines() noexcept;

void finish_cancels(cancel_node* roots) noexcept;  // calls the stop callbacks that are left

}  // namespace weft::detail
