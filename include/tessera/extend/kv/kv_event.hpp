// Changes of the prefix index, for a router in front of several engines that sends a prompt to the engine that knows its beginning.
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera {

// A page of tokens that the index has stored or removed. A page is named by a hash of all inputs from the beginning of the sequence to the
// end of the page, and of the adapters that begin there. A first page has in `before` a hash of the model, numerics, KV type and salt.
struct KvEvent {
  enum class Kind : std::int32_t {
    stored = 0,   // the page can be found from now on; the page before it was stored earlier
    removed = 1,  // the page can no longer be found; pages behind it were removed earlier
    // Forget all pages; events for the pages that are stored now follow. It is the first event. It comes again if events were lost, because
    // memory was short or more than 65,536 events waited.
    cleared = 2,
  };
  Kind kind = Kind::stored;
  Hash128 page = {};
  Hash128 before = {};             // stored: hash of the page before this one
  std::vector<Token> tokens = {};  // stored: the tokens of the page; -1 for an embedding
  std::vector<Hash128> contents = {};  // stored: content_hash() of each embedding, in order (kv_cache.hpp)
};

}  // namespace tessera
