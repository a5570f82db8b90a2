// The states behind the public handles of grammars and vocabularies (include/tessera/grammar).
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
  std::vector<std::string> bytes;  // [tokens]: the bytes of each token
  grammar::TokenTrie trie;
  Hash128 tokenizer;  // the tokenizer's fingerprint; zero: not known
};

namespace grammar {

// The results that the matchers of one grammar compute and share: the automaton's states, and the masks of allowed tokens. If the
// automaton takes more than half of the memory that the limits allow, the next matcher gets a new cache; older matchers keep the old one.
struct [[gnu::visibility("hidden")]] MaskCache {
  MaskCache(const Program& program, const GrammarLimits& limits) : machine(program, limits) {}

  std::mutex lock;
  Machine machine;
  SmallMap mask_ids;             // key: state of the machine; value: index in masks
  std::vector<MaskWords> masks;  // at most kMostMasks masks
  SmallMap slices;               // key: state << 8 | slice; value: 1, the state allows every token of the slice; 0, perhaps not

  static constexpr std::size_t kMostMasks = 512;

  // Computes the mask of a state: one bit for each token, 1 if the token may come next. Writes it to `out`  [words].
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
