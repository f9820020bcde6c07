// A handler of weft's own for a signal that channels may want, too.
#pragma once

#include <csignal>

namespace weft::io {

// sigaction(), but beneath the channels: while one has the signal it keeps it, and this is what the signal does when
// the last of them has let go of it.
void set_action_beneath_channels(int number, const struct sigaction& action, struct sigaction* before) noexcept;

}  // namespace weft::io
