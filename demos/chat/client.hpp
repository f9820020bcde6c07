// Serves one client with two goroutines: one reads its lines, the other writes what the hub has for it.
#pragma once

#include <cstddef>

#include <weft/net.hpp>

#include "hub.hpp"

namespace demo::chat {

// Returns when the client is gone. `queue`: how many lines may wait for it.
void serve_client(weft::net::tcp_stream& peer, const weft::chan<event>& to_hub, std::size_t queue);

}  // namespace demo::chat
