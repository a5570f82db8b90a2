// Searches the prefix index for a sequence's pages, and chooses the pages that the sequence takes. The pools' mutex must be held.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

// A question to the prefix index.
struct PrefixQuestion {
  std::string_view identity;
  KvInputs inputs;                         // inputs that continue the sequence
  std::span<const std::uint64_t> windows;  // [group]: window that gives pages back; 0: no page is given back
};

// too: pages that are only in the file count as present.
enum class Stored : std::uint8_t { too, excluded };

enum class SequenceHas : std::uint8_t { nothing, tokens };

// The index's nodes behind a sequence's pages, and the pages to take. Valid while the mutex is held.
struct FoundPages {
  std::vector<PrefixNode*> nodes;   // a node for each page of the inputs, as far as the index has them
  std::uint64_t pages = 0;          // number of first nodes whose pages are taken
  std::vector<std::uint64_t> from;  // [group]: pages before this one are not taken, because the window has passed them
};

// Searches for the question's inputs behind the node `after`; nullptr: nothing is found.
[[nodiscard]] FoundPages find_pages(const PrefixIndex& index, PrefixNode* after, const PooledLayout& layout,
                                    const PrefixQuestion& question, SequenceHas has, Stored stored);

}  // namespace tessera::detail
