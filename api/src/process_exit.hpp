// A goroutine has called exit(): what becomes of the others.
//
// They keep running while static objects are destroyed, as threads do. Destroying a socket, say, wakes those that wait
// in it with an error, and most programs do not expect that error: it leaves main or another goroutine. That must not
// turn the exit into an abort, nor into the exit of main's return value beside it. So such a goroutine goes no further.
//
// This is only so if a goroutine calls exit(): a thread that does may destroy objects that wait for the end of run().
#pragma once

namespace weft::detail {

void watch_process_exit();  // called by each run(): from then on exit() is noticed

// Called by a goroutine that has come to an end which it would not have come to without exit(). Does not return if
// another goroutine of its run() has called exit().
void stay_if_process_exits() noexcept;

}  // namespace weft::detail
