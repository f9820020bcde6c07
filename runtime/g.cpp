#include "runtime/g.hpp"

namespace weft::rt {

const char* describe(g_state s) noexcept {
  switch (s) {
    case g_state::idle: return "idle";
    case g_state::runnable: return "runnable";
    case g_state::running: return "running";
    case g_state::syscall: return "syscall";
    case g_state::waiting: return "waiting";
    case g_state::dead: return "dead";
    case g_state::abandoned: return "abandoned";
  }
  return "?";
}

}  // namespace weft::rt
