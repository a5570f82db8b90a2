// Searches the prefix index for a sequence's pages, and chooses the pages that the sequence takes. The pools' mutex must be held.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

// A sequence's question to the prefix index: which of its pages are there?
struct PrefixQuestion {
  std::string_view identity;
  KvInputs inputs;                         // inputs that follow the inputs that the sequence has
  std::span<const std::uint64_t> windows;  // [group]: pages that this window has passed are given back; 0: pages are never given back
};

// Says whether a page that is only in the file counts as present. too: the page counts; excluded: the page does not count.
enum class Stored : std::uint8_t { too, excluded };

enum class SequenceHas : std::uint8_t { nothing, tokens };

// The nodes that the index has for a sequence's inputs, and which of their pages to take. Valid while the mutex is held.
struct FoundPages {
  std::vector<PrefixNode*> nodes;   // the node of each page of the inputs, up to the first page that the index does not have
  std::uint64_t pages = 0;          // pages of the first `pages` nodes are taken
  std::vector<std::uint64_t> from;  // [group]: index of the first page to take; the window has passed the pages before it
};

// Searches for the question's inputs below the node `after`. If `after` is nullptr, finds nothing.
[[nodiscard]] FoundPages find_pages(const PrefixIndex& index, PrefixNode* after, const PooledLayout& layout,
                                    const PrefixQuestion& question, SequenceHas has, Stored stored);

}  // namespace tessera::detail
