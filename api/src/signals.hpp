// Installs a handler of weft's own for a signal that channels may want, too.
#pragma once

#include <csignal>

namespace weft::io {

// As sigaction(), but beneath the channels: while a channel has the signal, it keeps it, and `action` is what the
// signal does after the last channel has let go of it.
void set_action_beneath_channels(int number, const struct sigaction& action, struct sigaction* before) noexcept;

}  // namespace weft::io
