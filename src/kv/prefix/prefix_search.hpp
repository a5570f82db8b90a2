// What the prefix index has for a sequence, and which of it the sequence takes. With the pools' mutex held.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/core/token.hpp>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

// What the prefix index is asked.
struct PrefixQuestion {
  std::string_view identity;
  std::span<const Token> tokens;           // that continue the sequence
  std::span<const std::uint64_t> windows;  // [group]: what of it gives pages back; 0: nothing
};

// Where pages are looked for.
enum class Stored : std::uint8_t { too, excluded };

enum class SequenceHas : std::uint8_t { nothing, tokens };

// What the index has behind a sequence's pages, and which of it to take. Valid while the mutex is held.
struct FoundPages {
  std::vector<PrefixNode*> nodes;   // one for each page of the tokens, as far as they go
  std::uint64_t pages = 0;          // of these, the first ones are taken ...
  std::vector<std::uint64_t> from;  // [group]: ... but not what is below this one, which the window has passed
};

// Behind the node `after`; nullptr: there is nothing.
[[nodiscard]] FoundPages find_pages(const PrefixIndex& index, PrefixNode* after, const PooledLayout& layout,
                                    const PrefixQuestion& question, SequenceHas has, Stored stored);

}  // namespace tessera::detail
