// The state behind the handles of include/tessera/grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tessera/grammar/compiled.hpp>

#include "grammar/machine.hpp"
#include "grammar/trie.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] GrammarVocabulary::State {
  std::vector<std::string> bytes;  // [tokens]
  grammar::TokenTrie trie;
  Hash128 tokenizer;  // fingerprint; zero: not known
};

namespace grammar {

// The states and masks that the matchers of a grammar have found, shared by all of them. When a cache has grown to half of its limit, the
// next matcher begins a new cache; the matchers at work keep theirs.
struct [[gnu::visibility("hidden")]] MaskCache {
  MaskCache(const Program& program, const MachineLimits& limits) : machine(program, limits) {}

  std::mutex lock;
  Machine machine;
  SmallMap mask_ids;             // state -> index in masks
  std::vector<MaskWords> masks;  // at most kMostMasks
  SmallMap slices;               // state << 8 | slice -> 1: the state allows every token of the slice; 0: it may not

  static constexpr std::size_t kMostMasks = 512;

  // Writes the mask of a state to `out` [words].
  void mask(std::uint32_t state, const TokenTrie& tokens, MaskWords& out);

 private:
  void walk(std::uint32_t state, const Trie& trie, MaskWords& out);
  [[nodiscard]] bool contains(std::uint32_t state, const TokenTrie& tokens, std::size_t slice);
  [[nodiscard]] bool search_slice(std::uint32_t state, const Slice& slice);

  std::vector<std::uint32_t> path_;
};

struct [[gnu::visibility("hidden")]] Compiled {
  GrammarVocabulary vocabulary;
  GrammarLimits limits;
  Program program;
  mutable std::mutex lock;
  mutable std::shared_ptr<MaskCache> cache;

  [[nodiscard]] std::shared_ptr<MaskCache> warm_cache() const;
};

}  // namespace grammar
}  // namespace tessera
