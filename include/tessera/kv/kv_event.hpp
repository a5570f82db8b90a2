// What the prefix index gains and loses, for routers in front that send a prompt where its beginning is known.
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/core/hash.hpp>
#include <tessera/core/token.hpp>

namespace tessera {

// A page of tokens behind those before it. Its hash names them all, from the beginning: with the model, numerics, KV type and
// salt that a sequence must share with them, which the hash before the first page stands for.
struct KvEvent {
  enum class Kind : std::int32_t {
    stored = 0,   // it can be found from now on; its parent was stored before
    removed = 1,  // it cannot any more; what followed it was removed before
    cleared = 2,  // forget everything: what is stored follows. So it begins, and so it goes on where memory was short
  };
  Kind kind = Kind::stored;
  Hash128 page = {};
  Hash128 before = {};             // of `stored`: the page that it follows
  std::vector<Token> tokens = {};  // of `stored`: the page's own
};

}  // namespace tessera
