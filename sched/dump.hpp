// Every goroutine: what it is, what it does and where (dump.cpp).
#pragma once

#include "runtime/report.hpp"

namespace weft::rt {

void dump_goroutines(int fd, dump_of what, names n) noexcept;

}  // namespace weft::rt
