// Describes, in numbers, the part of a layer that rank 0 reads from other ranks' pages, or writes to them, outside of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/step_pages.hpp"

namespace tessera::detail {

struct LayerPages {
  std::vector<PageCopy> copies;  // copies of pages to make first (see StepDescription). RemoteRanks adds them when it sends the message
  StepPages pages;               // one sequence
  std::uint32_t layer = 0;
  std::uint64_t first_page = 0, end_page = 0;  // pages of the sequence
  // Bytes [at, at + bytes) of the state of a recurrent layer. For a layer with keys and values both numbers are 0, and the part is the
  // blocks of all heads that a rank has, [k | v][head].
  std::uint64_t at = 0, bytes = 0;

  void clear() noexcept {
    copies.clear();
    pages.clear();
  }
};

}  // namespace tessera::detail
