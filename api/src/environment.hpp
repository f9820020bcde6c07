// The environment: WEFT_PROCS and WEFT_DEBUG, read at each run().
#pragma once

#include "sched/scheduler.hpp"
#include "weft/runtime.hpp"

namespace weft {

// Returns the user's options with the environment applied. A bad value in the environment causes a warning on stderr,
// and the default is used. Throws std::invalid_argument for bad values in `o`.
rt::scheduler_options effective_options(const options& o);

}  // namespace weft
