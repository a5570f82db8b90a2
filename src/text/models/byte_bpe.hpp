// Byte-level BPE: the bytes of a word join by ranked merges, the lowest rank first (leftmost of equals).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/merge.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// A file's merges as token ids.
class MergeTable {
 public:
  // Reads the merges, and finds their tokens in the vocabulary. Error: cancelled, by `stop`.
  [[nodiscard]] static Result<MergeTable> load(const ValueList& merges, const Vocabulary& vocabulary,
                                               const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const ValueList& merges) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  bool operator==(const MergeTable&) const = default;

  // Returns the rank of joining two tokens; MinTree::kNever if no merge joins them. For a pair that is named twice the first merge counts.
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const noexcept;
  [[nodiscard]] std::uint32_t result(std::uint32_t rank) const noexcept { return merges_[rank].result; }

  template <class Add>
  void each_part(const Add& add) const {
    add(merges_);
  }

 private:
  struct Pair {
    std::uint32_t left, right, result;
    bool operator==(const Pair&) const = default;
  };

  std::vector<Pair> merges_;  // by rank
  HashedOrder by_pair_;       // merges whose parts and result are tokens
};

// Working memory of one encode() call.
class ByteBpe {
 public:
  ByteBpe(const Vocabulary& vocabulary, const MergeTable& merges) noexcept : vocabulary_(vocabulary), merges_(merges) {}
  void encode(std::string_view word, TokenList& out);

 private:
  void add(std::uint32_t id, TokenList& out) const;

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  std::vector<std::uint32_t> ids_;  // token of the symbol that begins at each byte; kNoToken: a byte without a token
  Merge symbols_;
};

}  // namespace tessera::detail
