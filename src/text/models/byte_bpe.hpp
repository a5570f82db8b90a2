// Byte-level BPE: cuts a word into tokens. At first each byte of the word is a token of its own. Then neighbouring tokens are joined as
// the vocabulary's list of merges says: always the pair whose merge has the lowest rank; of pairs with equal ranks, the leftmost.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/merge.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// The merges of a model file, as token ids.
class MergeTable {
 public:
  // Reads the merges and looks their tokens up in the vocabulary. Error: cancelled, `stop` was requested.
  [[nodiscard]] static Result<MergeTable> load(const ValueList& merges, const Vocabulary& vocabulary,
                                               const std::stop_token& stop);
  // Reads the merges from a list that has two texts for each merge: its left part and its right part. The text of the joined token is the
  // left part followed by the right part. Exception: if `prefix` is not 0, the first `prefix` bytes of the right part are left out,
  // because they only mark that the part continues a word ("##").
  [[nodiscard]] static Result<MergeTable> load_parts(const ValueList& parts, std::size_t prefix, const Vocabulary& vocabulary,
                                                     const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const ValueList& merges) noexcept { return plan_bytes(merges.size()); }
  [[nodiscard]] static std::uint64_t plan_bytes(std::uint64_t merges) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  bool operator==(const MergeTable&) const = default;

  // Makes rank() return one rank for all merges that make the same token: the rank of the first of them. Then, if two such merges are
  // possible in a text, the one further left is made first, as in the library tiktoken. Precondition: merges that make the same token are
  // consecutive in the list.
  void share_ranks() noexcept { shares_ranks_ = true; }
  // Returns the rank of the merge that joins these two tokens; MinTree::kNever if there is none. If the file has a merge for the same two
  // tokens twice, the first counts.
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const noexcept;
  [[nodiscard]] std::uint32_t result(std::uint32_t rank) const noexcept { return merges_[rank].result; }

  template <class Add>
  void each_part(const Add& add) const {
    add(merges_);
  }

 private:
  [[nodiscard]] Status index(const std::stop_token& stop);

  struct Pair {
    std::uint32_t left, right, result;
    bool operator==(const Pair&) const = default;
  };

  std::vector<Pair> merges_;  // [rank]
  bool shares_ranks_ = false;
  HashedOrder by_pair_;       // finds the rank of a pair; only merges whose parts and result are tokens
};

// Encodes words, with working memory that lasts for one encode() call of the tokenizer.
class ByteBpe {
 public:
  ByteBpe(const Vocabulary& vocabulary, const MergeTable& merges) noexcept : vocabulary_(vocabulary), merges_(merges) {}
  void encode(std::string_view word, TokenList& out);

 private:
  void add(std::uint32_t id, TokenList& out) const;

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  std::vector<std::uint32_t> ids_;  // [byte of the word]: the token of the symbol that begins there; kNoToken: the byte has no token
  Merge symbols_;
};

}  // namespace tessera::detail
