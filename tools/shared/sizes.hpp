// Parses sizes of the command line.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::tool {

// Parses "512MiB", "16.5gb", "4096". Errors say which forms are expected.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace tessera::tool
