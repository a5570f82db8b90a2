// A destination for the bytes of a writer: a file, a buffer, a socket, or an object of the host.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera {

// Receives a file's bytes in order, in pieces of any size. An error of the sink ends the writing, and the writer returns that error.
//
//   std::vector<std::byte> bytes;
//   ByteSink sink = [&](std::span<const std::byte> piece) { return bytes.insert(bytes.end(), piece.begin(), piece.end()), Status(); };
using ByteSink = std::function<Status(std::span<const std::byte>)>;

}  // namespace tessera
