// Synchronisation: for goroutines, what the standard library has for threads. Waiting parks the goroutine, never its
// thread.
//
//   mutex                one at a time                        sync/mutex.hpp
//   shared_mutex         one writer or many readers           sync/shared_mutex.hpp
//   condition_variable   a change under a mutex               sync/condition_variable.hpp
//   semaphore            a number of permits                  sync/semaphore.hpp
//   wait_group           many things are done                 sync/wait_group.hpp
//   latch                the same, once                       sync/latch.hpp
//   barrier              many meet, again and again           sync/barrier.hpp
//   event                it has happened                      sync/event.hpp
//   once_flag            call_once                            sync/once.hpp
//
// All members may be called anywhere: from goroutines, which park, and from other threads, which block as threads, also
// while no runtime is running. The timed forms take any std::chrono duration, or a point of any clock. They never
// return early, and throw std::bad_alloc if there is no memory for the timer; then nothing has happened.
//
// Misuse that can be detected (unlocking what is not locked, a negative counter) is fatal: a message with the values, a
// trace, and exit code 2.
//
// A waker does not touch the object any more once its waiter may return, so the waiter may destroy the object.
// Goroutines that a run() left behind are skipped; what they held stays held.
#pragma once

#include <weft/sync/barrier.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/latch.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/once.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>
#include <weft/sync/wait_group.hpp>
