#include "replica.hpp"

namespace tessera::simulate {

std::size_t BlockCache::count(std::span<const std::uint64_t> blocks) const {
  std::size_t n = 0;
  while (n < blocks.size() && places_.contains(blocks[n])) ++n;
  return n;
}

std::size_t BlockCache::find(std::span<const std::uint64_t> blocks) {
  const std::size_t n = count(blocks);
  // Moves the found blocks to the front of the list, where the most recently used blocks are. The prompt's first block is moved last, and
  // so stands in front of all: the beginning of a prompt must stay longer than the blocks after it, which are useless without it.
  for (std::size_t i = n; i-- > 0;) order_.splice(order_.begin(), order_, places_.at(blocks[i]));
  return n;
}

void BlockCache::insert(std::span<const std::uint64_t> blocks) {
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const auto [at, is_new] = places_.try_emplace(blocks[i]);
    if (is_new) at->second = order_.insert(order_.begin(), blocks[i]);
    else order_.splice(order_.begin(), order_, at->second);
  }
}

void BlockCache::shrink(std::size_t most) {
  while (order_.size() > most) {
    places_.erase(order_.back());
    order_.pop_back();
  }
}

}  // namespace tessera::simulate
