// Events that tell which pages the prefix index of an engine has. They are for a router in front of several engines: the router sends a
// prompt to an engine that has already computed the prompt's beginning.
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera {

// One page of tokens that the index has stored or removed. A page is named by a hash, so that equal beginnings of sequences have pages of
// equal names. The hash covers all inputs (tokens and embeddings) from the sequence's first to the page's last, and the adapters that begin
// at one of these inputs. It also covers `before`, the name of the page before. For the first page of a sequence, `before` is a hash of the
// model, numerics, KV type and salt.
struct KvEvent {
  enum class Kind : std::int32_t {
    stored = 0,   // the page can be found from now on; the page before it was stored in an earlier event
    removed = 1,  // the page can no longer be found; the pages after it were removed in earlier events
    // The receiver must forget all pages; events for the pages that are stored now follow. The first event of all is a `cleared`. Later, a
    // `cleared` comes if events were lost, because memory was short or more than 65,536 events waited to be read.
    cleared = 2,
  };
  Kind kind = Kind::stored;
  Hash128 page = {};
  Hash128 before = {};             // stored: hash of the page before this one
  std::vector<Token> tokens = {};  // stored: tokens of the page; -1 for an embedding
  std::vector<Hash128> contents = {};  // stored: content_hash() of each embedding, in order (kv_cache.hpp)
};

}  // namespace tessera
