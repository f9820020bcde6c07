// Why a goroutine is parked, shown in dumps. There is one reason for each thing to wait for; some reasons serve a
// second one, too:
//   event_wait  func_timer::stop_and_wait, which waits for a function that runs
//   io_turn     the close of a socket, which waits for the calls that are inside
//   sleep       a send or receive with a time limit on a nil channel
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::rt {

enum class wait_reason : std::uint8_t {
  none,
  chan_recv,
  chan_send,
  chan_recv_nil,
  chan_send_nil,
  select,
  select_no_cases,
  sleep,
  mutex_lock,
  shared_mutex_lock,
  shared_mutex_lock_shared,
  condition_wait,
  wait_group_wait,
  once_wait,
  semaphore_acquire,
  latch_wait,
  barrier_wait,
  event_wait,
  task_join,
  io_read,
  io_write,
  io_turn,
  lock_os_thread,
  forced_tick_idle,
  count_,
};

inline constexpr std::size_t wait_reasons = static_cast<std::size_t>(wait_reason::count_);

constexpr const char* describe(wait_reason r) noexcept {
  switch (r) {
    case wait_reason::none: return "";
    case wait_reason::chan_recv: return "chan receive";
    case wait_reason::chan_send: return "chan send";
    case wait_reason::chan_recv_nil: return "chan receive (nil chan)";
    case wait_reason::chan_send_nil: return "chan send (nil chan)";
    case wait_reason::select: return "select";
    case wait_reason::select_no_cases: return "select (no cases)";
    case wait_reason::sleep: return "sleep";
    case wait_reason::mutex_lock: return "mutex lock";
    case wait_reason::shared_mutex_lock: return "shared_mutex lock";
    case wait_reason::shared_mutex_lock_shared: return "shared_mutex lock_shared";
    case wait_reason::condition_wait: return "condition_variable wait";
    case wait_reason::wait_group_wait: return "wait_group wait";
    case wait_reason::once_wait: return "call_once wait";
    case wait_reason::semaphore_acquire: return "semaphore acquire";
    case wait_reason::latch_wait: return "latch wait";
    case wait_reason::barrier_wait: return "barrier wait";
    case wait_reason::event_wait: return "event wait";
    case wait_reason::task_join: return "task join";
    case wait_reason::io_read: return "IO wait (read)";
    case wait_reason::io_write: return "IO wait (write)";
    case wait_reason::io_turn: return "IO wait (turn)";
    case wait_reason::lock_os_thread: return "lock_os_thread";
    case wait_reason::forced_tick_idle: return "forced tick (idle)";
    case wait_reason::count_: break;
  }
  return "?";
}

}  // namespace weft::rt
