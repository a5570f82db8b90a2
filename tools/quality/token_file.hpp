// A file of tokens: one document a line, as decimal ids separated by spaces. Lines that begin with # are comments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

namespace tessera::quality {

using Documents = std::vector<std::vector<Token>>;

// Reads a file. Every document must have at least two tokens, all below `vocab`.
[[nodiscard]] Result<Documents> read_tokens(const std::filesystem::path& path, std::uint32_t vocab);

// Returns the number of predictions: the tokens that have a token before them.
[[nodiscard]] std::uint64_t predicted(const Documents& documents);

// Returns the 64-bit FNV-1a hash of the ids as 32-bit little-endian numbers, with 0xffffffff after each document.
[[nodiscard]] std::uint64_t hash(const Documents& documents);

}  // namespace tessera::quality
