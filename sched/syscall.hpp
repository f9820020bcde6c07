// Calls that may block: the P is free for others meanwhile (syscall.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

void enter_syscall() noexcept;
void exit_syscall() noexcept;
M* finish_syscall(M* m) noexcept;  // from enter_slow

[[nodiscard]] bool retake_syscall(P* p) noexcept;  // true: the caller owns p

}  // namespace weft::rt
