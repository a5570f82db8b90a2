// Unigram tokenization (Kudo, 2018) as SentencePiece runs it: of all ways to cut a text into pieces, the one whose scores have the greatest
// sum, found from left to right (Viterbi). A character that no piece says costs ten more than the worst piece. It becomes its bytes, or,
// together with neighbours of the same kind, one unknown token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/charsmap.hpp"
#include "text/models/piece_order.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// A file's normaliser and pieces.
class UnigramModel {
 public:
  [[nodiscard]] static Result<UnigramModel> load(const TokenizerMetadata& metadata, const Vocabulary& vocabulary,
                                                 const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return pieces.memory_bytes() + charsmap.memory_bytes(); }

  Charsmap charsmap;
  PieceOrder pieces;
  double unknown_score = 0;
  bool add_space_prefix = false, remove_extra_spaces = false;
  bool byte_fallback = false;
};

// Working memory of one encode() call.
class Unigram {
 public:
  Unigram(const Vocabulary& vocabulary, const UnigramModel& model) noexcept : vocabulary_(vocabulary), model_(model) {}
  [[nodiscard]] Status encode(std::string_view text, TokenList& out);

 private:
  [[nodiscard]] Status normalize(std::string_view text);
  void search(TokenList& out);
  void offer(std::size_t begin, std::size_t end, double score, std::uint32_t token);
  void end_segment(std::size_t end, TokenList& out);
  void emit(std::uint32_t token, std::string_view piece, TokenList& out);

  const Vocabulary& vocabulary_;
  const UnigramModel& model_;
  std::string normal_;  // the text after the normaliser, with one space for U+2581

  // A segment is a stretch that no piece reaches out of; it is settled when its end is reached. By position in the segment, from 1: the
  // last token of the best way to this position; kNoToken if no way is known.
  std::vector<std::uint32_t> last_;
  std::size_t segment_ = 0;                             // place where the segment begins
  std::size_t known_ = 0;                               // positions up to this one have a score
  std::array<double, PieceOrder::kLongestPiece + 1> scores_{};  // scores of the best ways, by position modulo the size
  bool after_unknown_ = false;
};

}  // namespace tessera::detail
