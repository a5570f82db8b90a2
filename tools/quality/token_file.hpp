// A text in tokens: a document a line, ids in decimal between spaces; lines that begin with # are remarks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

namespace tessera::quality {

using Documents = std::vector<std::vector<Token>>;

// Every document has at least two tokens, all of them below `vocab`.
[[nodiscard]] Result<Documents> read_tokens(const std::filesystem::path& path, std::uint32_t vocab);

// Tokens that have a token before them: what a model is asked to foretell.
[[nodiscard]] std::uint64_t predicted(const Documents& documents);

// FNV-1a, 64 bits, over the ids as 32-bit little-endian numbers with 0xffffffff after each document.
[[nodiscard]] std::uint64_t hash(const Documents& documents);

}  // namespace tessera::quality
