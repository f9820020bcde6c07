// Copies of weft in one process: one in the program and another, linked statically, in a plugin, for example. Each
// would have its own scheduler, and a goroutine of one would block its thread in a channel of the other. So while the
// runtime of one copy runs, no other copy may be used: using it ends the process, with a message that names both files.
//
// Several copies of which only one is used do no harm. That is common: the dynamic linker lets all files call the first
// copy that it finds, unless symbols are hidden or bound early.
//
// Copies find each other as follows: the file that holds a copy has a note (as in "ELF note", found by dl_iterate_phdr)
// that leads to the copy's state. So nothing has to be exported, and nothing outlives the process or reaches its
// children.
#pragma once

namespace weft::rt {

// Declares that this copy's runtime runs, or no longer runs. begin_as_only_copy ends the process if another copy's
// runtime runs.
void begin_as_only_copy() noexcept;
void end_as_only_copy() noexcept;

// Ends the process if another copy's runtime runs.
void refuse_beside_other_copy() noexcept;

// From here on, dlclose() does not unload the file that holds this copy: a signal handler lies in it, and threads that
// run() left behind sleep in it.
void stay_loaded() noexcept;

}  // namespace weft::rt
