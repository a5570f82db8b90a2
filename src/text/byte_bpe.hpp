// Byte-level BPE: the bytes of a word join by ranked merges, the lowest rank first (leftmost of equals).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_queue.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// tokenizer.ggml.merges as token ids.
class MergeTable {
 public:
  [[nodiscard]] static Result<MergeTable> load(const GgufFile& file, const Vocabulary& vocabulary);
  [[nodiscard]] static std::uint64_t plan_bytes(const GgufFile& file) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  static constexpr std::uint32_t kNoRank = 0xFFFFFFFFu;
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const noexcept;
  [[nodiscard]] std::uint32_t result(std::uint32_t rank) const noexcept { return merges_[rank].result; }
  [[nodiscard]] bool joins(std::uint32_t rank, std::uint32_t left, std::uint32_t right) const noexcept {
    return merges_[rank].left == left && merges_[rank].right == right;
  }

 private:
  struct Merge {
    std::uint32_t left, right, result;
  };
  [[nodiscard]] std::size_t slot_of(std::uint32_t left, std::uint32_t right) const noexcept;

  std::vector<Merge> merges_;         // by rank
  std::vector<std::uint32_t> table_;  // ranks by the hash of their pair
};

// Working memory of one encode() call.
class ByteBpe {
 public:
  ByteBpe(const Vocabulary& vocabulary, const MergeTable& merges) noexcept : vocabulary_(vocabulary), merges_(merges) {}
  void encode(std::string_view word, std::vector<Token>& out);

 private:
  struct Symbol {
    std::uint32_t id;  // kNoToken: a byte without a token
    std::uint32_t previous, next;
    bool alive;
  };
  void offer(std::uint32_t left, std::uint32_t right);

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  MergeQueue queue_;
};

}  // namespace tessera::detail
