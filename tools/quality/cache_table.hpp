// What smaller KV caches cost: the predictions of one engine with each of them, against those with all tokens' keys and values in
// float32. Everything else is the same, so that nothing but the cache shows.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <tessera/engine.hpp>

#include "cache_choice.hpp"
#include "divergence.hpp"
#include "token_file.hpp"

namespace tessera::quality {

struct CacheTableOptions {
  std::vector<tool::CacheChoice> caches;
  std::size_t chunk = 256;  // tokens of an append; a budget drops tokens behind each
  std::size_t last = 0;     // predictions of a document that count, its last ones; 0: all
};

struct CacheRow {
  Divergence divergence;
  double bytes_per_token = 0.0;  // held at a document's end, over its tokens; of all documents
};

// A row for each cache. The sessions of a document read it side by side, a chunk at a time: logits are compared and forgotten, so
// documents can be long. `progress` gets the tokens that have been read, of all documents.
[[nodiscard]] Result<std::vector<CacheRow>> compare_caches(const Engine& engine, const Documents& documents,
                                                           const CacheTableOptions& options,
                                                           const std::function<void(std::size_t)>& progress);

}  // namespace tessera::quality
