// Measures the loss by smaller KV caches: compares the predictions of one engine with each cache to the predictions with the keys
// and values of all tokens in float32. All else is equal, so only the cache makes a difference.
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
  std::size_t chunk = 256;  // tokens of an append, after which a budget drops tokens
  std::size_t last = 0;     // number of last predictions of each document that count; 0: all
};

struct CacheRow {
  Divergence divergence;
  double bytes_per_token = 0.0;  // bytes held at the documents' ends, divided by their tokens
};

// Returns a row for each cache. For each document there is a session for each cache. They read the document by turns, a chunk at a time;
// logits are compared and then dropped, so documents can be long. `progress` is called with the number of tokens of all documents that have
// been read.
[[nodiscard]] Result<std::vector<CacheRow>> compare_caches(const Engine& engine, const Documents& documents,
                                                           const CacheTableOptions& options,
                                                           const std::function<void(std::size_t)>& progress);

}  // namespace tessera::quality
