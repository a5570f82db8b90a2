// What a session's logits must be, however it came about: those of a fresh contiguous session without prefix reuse, of
// the same KV type. For sessions that were edited, of one that does the same edits in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/models.hpp"

namespace tessera::test {

// The same for the same seed, on every platform.
inline std::vector<Token> make_tokens(std::uint64_t seed, std::size_t n, std::uint32_t vocab) {
  std::vector<Token> tokens;
  std::uint64_t state = seed * 2862933555777941757u + 3037000493u;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(static_cast<Token>((state >> 33) % vocab));
  }
  return tokens;
}

// The KV types of a session; one for all layers is enough.
struct KvTypes {
  KvTypes(DType all, const WideLayers& at_ends = {}) : dtype(all), wide(at_ends) {}
  DType dtype;
  WideLayers wide;
};

// Of a session of a model whose layers all keep keys and values of their own.
inline KvTypes types_of(const Session& session) {
  const KvLayout& layout = session.kv().layout();
  KvTypes types = layout.dtype;
  const auto n = static_cast<std::uint32_t>(layout.layers.size());
  const auto is_wide = [&](std::uint32_t layer) { return layout.layer(layer).dtype != layout.dtype; };
  std::uint32_t first = 0, last = 0;
  while (first < n && is_wide(first)) ++first;
  while (first + last < n && is_wide(n - 1 - last)) ++last;
  if (first != 0 || last != 0) types.wide = {.dtype = layout.layer(first != 0 ? 0 : n - 1).dtype, .first = first, .last = last};
  return types;
}

// By itself: nothing paged, nothing cached, nothing shared.
inline Session lone_session(const Engine& engine, const KvTypes& types, std::uint32_t page_tokens = 32) {
  return must(engine.session({.kv = {.dtype = types.dtype,
                                     .kind = KvKind::contiguous,
                                     .page_tokens = page_tokens,
                                     .prefix = PrefixReuse::off,
                                     .wide = types.wide}}));
}

// Logits after the last of the tokens, of one append to a lone session.
inline std::vector<float> lone_logits(const Engine& engine, const KvTypes& types, std::span<const Token> tokens) {
  Session session = lone_session(engine, types);
  const Logits logits = must(session.append(tokens));
  return {logits.values.begin(), logits.values.end()};
}

// The same, for many sequences with common beginnings: one append of a lone session gives the logits after each of its
// tokens, and they are kept in a tree of tokens.
class Twins {
 public:
  Twins(const Engine& engine, const KvTypes& types) : engine_(engine), types_(types) {}

  std::span<const float> logits(std::span<const Token> tokens) {
    if (const Node* node = find(tokens); node != nullptr) return node->logits;
    ++runs_;
    Session session = lone_session(engine_, types_);
    const Logits all = must(session.append(tokens, {.logits = LogitsOf::all}));
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      Node& node = nodes_[key(at, tokens[i])];
      if (node.id == 0) {
        node.id = nodes_.size();
        node.logits.assign(all[i].begin(), all[i].end());
      }
      at = node.id;
    }
    return find(tokens)->logits;
  }

  [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
  struct Node {
    std::uint64_t id = 0;
    std::vector<float> logits;
  };

  static std::uint64_t key(std::uint64_t parent, Token token) {
    return parent << 16 | static_cast<std::uint64_t>(token);
  }

  const Node* find(std::span<const Token> tokens) const {
    const Node* node = nullptr;
    for (const Token token : tokens) {
      const auto found = nodes_.find(key(node != nullptr ? node->id : 0, token));
      if (found == nodes_.end()) return nullptr;
      node = &found->second;
    }
    return node;
  }

  const Engine& engine_;
  KvTypes types_;
  std::unordered_map<std::uint64_t, Node> nodes_;
  std::size_t runs_ = 0;
};

// Tokens that were appended, and [first, last) that was removed then.
struct Edit {
  std::vector<Token> appended;
  std::size_t first = 0, last = 0;
};

// Does it all again, alone: the edits in order, then `rest` appended. Pages of 64 tokens: what a window gives back, it
// gives back latest of all.
inline Session replay(const Engine& engine, const KvTypes& types, std::span<const Edit> edits, std::span<const Token> rest) {
  Session session = lone_session(engine, types, 64);
  for (const Edit& edit : edits) {
    if (!edit.appended.empty()) must(session.append(edit.appended));
    must(session.remove(edit.first, edit.last));
  }
  if (!rest.empty()) must(session.append(rest));
  return session;
}

}  // namespace tessera::test
