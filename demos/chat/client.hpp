// One client: a goroutine that reads its lines, and one that writes what others said.
#pragma once

#include <cstddef>

#include <weft/net.hpp>

#include "hub.hpp"

namespace demo::chat {

// Returns when the client is gone. `queue`: lines that may wait for it.
void serve_client(weft::net::tcp_stream& peer, const weft::chan<event>& to_hub, std::size_t queue);

}  // namespace demo::chat
