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
  // Says which bytes of a page are meant. For a recurrent layer: bytes [at, at + bytes) of its state. For a layer with keys and values: all
  // blocks of the heads that the rank has, in the order [k | v][head]; both numbers are 0 then.
  std::uint64_t at = 0, bytes = 0;

  void clear() noexcept {
    copies.clear();
    pages.clear();
  }
};

}  // namespace tessera::detail
