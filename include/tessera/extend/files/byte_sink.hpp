// Where a writer's bytes go: a file, a buffer, a socket, whatever a host implements.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera {

// Receives a file's bytes in order, in pieces of any size. Its error ends the writing and comes back as it is.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

}  // namespace tessera
