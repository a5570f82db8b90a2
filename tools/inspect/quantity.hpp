// Parses numbers of the command line. Each error says which form was expected.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::inspect {

[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view text);  // "64"
[[nodiscard]] Result<std::uint64_t> parse_tokens(std::string_view text);  // "8192", "8k": k is 1024

}  // namespace tessera::inspect
