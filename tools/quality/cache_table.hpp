// Measures how much smaller KV caches change a model's predictions. The same engine reads the same text with each cache, and its
// predictions are compared with those that it makes with the keys and values of all tokens in float32. Nothing else differs between the
// two.
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
  std::size_t chunk = 256;  // tokens of one append; a budget drops tokens after each append
  std::size_t last = 0;     // how many of the last predictions of each document count; 0: all
};

struct CacheRow {
  Divergence divergence;
  double bytes_per_token = 0.0;  // bytes held at the documents' ends, divided by their tokens
};

// Returns a row of the table for each cache. Reads one document after another. For a document, each cache has a session; the sessions read
// the document by turns, a chunk at a time. Logits are compared and dropped after each chunk, so documents can be long. `progress` gets the
// number of tokens read so far, of all documents.
[[nodiscard]] Result<std::vector<CacheRow>> compare_caches(const Engine& engine, const Documents& documents,
                                                           const CacheTableOptions& options,
                                                           const std::function<void(std::size_t)>& progress);

}  // namespace tessera::quality
