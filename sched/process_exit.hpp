// Somebody has called exit(), or main() has returned: what becomes of the goroutines.
//
// They keep running while static objects are destroyed, as threads do. Destroying a socket, say, wakes those that wait
// in it with an error, and most programs do not expect that error: it leaves a goroutine, or main. That must not turn
// the exit into an abort, nor into the exit of main's return value beside it. So an exception that nobody catches only
// ends its goroutine (uncaught.cpp), and main's end waits until the process is gone (runtime.cpp). In a run() that a
// later thread of the process has called it waits for a second only: a static object may have made that thread, and
// join it.
//
// exit() begins with the thread_locals of the thread that calls it, before any static object. If that thread still runs
// a goroutine, that one has called it. A plain thread's exit() is noticed by a function that the first run() registers
// with atexit(): before the destruction of what was there when run() was called.
#pragma once

namespace weft::rt {

void watch_for_exit() noexcept;  // called by each thread that will run goroutines

// Called by a goroutine. True: the process ends, by another one of its run() or by a plain thread.
bool process_exits() noexcept;

}  // namespace weft::rt
