// Unigram tokenization (Kudo, 2018) as SentencePiece does it. Each piece of the vocabulary has a score. A text is cut into the pieces
// whose scores have the largest sum, which a search from left to right finds (Viterbi). A character that is in no piece counts as a
// piece, with a score that is 10 below the score of the worst piece. If such a character is in the best cut, it becomes the tokens of its
// bytes or, together with unknown characters beside it, one unknown token.
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

// The normaliser and the pieces of a model file.
class UnigramModel {
 public:
  [[nodiscard]] static Result<UnigramModel> load(const TokenizerMetadata& metadata, const Vocabulary& vocabulary,
                                                 const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept;
  // Makes the model of a tokenizer.json, whose normalizer has changed the text before. `scores`: one for each token. Error: cancelled.
  [[nodiscard]] static Result<UnigramModel> of_texts(const Vocabulary& vocabulary, std::vector<double> scores, double least, bool byte_fallback,
                                                     const std::stop_token& stop);
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return pieces.memory_bytes() + charsmap.memory_bytes() + scores.capacity() * sizeof(double);
  }
  [[nodiscard]] double score(std::uint32_t id, const Vocabulary& vocabulary) const noexcept {
    if (!scores.empty()) return scores[id];
    if (vocabulary.type(id) != TokenType::user_defined) return double{vocabulary.score(id)};
    return static_cast<double>(static_cast<float>(0.1 * (static_cast<double>(vocabulary.text(id).size()) - 1)));
  }

  Charsmap charsmap;
  PieceOrder pieces;
  std::vector<double> scores{};  // [token]. Empty: score() uses the vocabulary's scores (user-defined tokens: 0.1 * (bytes - 1))
  double unknown_score = 0;
  bool add_space_prefix = false, remove_extra_spaces = false;
  bool byte_fallback = false;
};

// Encodes texts, with working memory that lasts for one encode() call of the tokenizer.
class Unigram {
 public:
  Unigram(const Vocabulary& vocabulary, const UnigramModel& model) noexcept : vocabulary_(vocabulary), model_(model) {}
  [[nodiscard]] Status encode(std::string_view text, TokenList& out);
  void encode_normal(std::string_view text, TokenList& out);  // encodes a text that is normalised already

 private:
  [[nodiscard]] Status normalize(std::string_view text);
  void search(std::string_view text, TokenList& out);
  void shift_scores(std::size_t at);
  void offer(std::size_t begin, std::size_t end, double score, std::uint32_t token);
  void end_segment(std::size_t end, TokenList& out);
  void end_unknown(TokenList& out);
  void emit(std::uint32_t token, std::string_view piece, TokenList& out);

  const Vocabulary& vocabulary_;
  const UnigramModel& model_;
  std::string normal_;     // the normalised text; U+2581 is stored as one space
  std::string_view text_;  // the text that is searched: normal_, or the caller's

  // The state of a search, which goes through the text in segments. A segment ends at an offset that no piece crosses, so the tokens
  // before this offset are final.
  //
  // last_[i], for i > 0: the last token of the best way to cut the first i bytes of the segment into tokens. kNoToken: no way is known
  // yet.
  std::vector<std::uint32_t> last_;
  std::size_t segment_ = 0;                             // offset in the text at which the segment begins
  std::size_t known_ = 0;                               // up to this offset in the text last_ and scores_ are set
  // The score of the best way to cut the text up to an offset, at index (offset mod the array's size). Scores further back than the
  // longest piece are not needed any more, so the array is short. SentencePiece adds scores as floats; for its models the sums here are
  // rounded to floats too, so that ways with nearly equal sums compare as in SentencePiece.
  std::array<double, PieceOrder::kLongestPiece + 1> scores_{};
  // Only for a tokenizer.json with byte fallback: a range of the text, [begin, end), with consecutive unknown characters that are not
  // encoded yet. At the end of the range it is decided: if the whole range is the text of the unknown token, it becomes this token;
  // otherwise it becomes the tokens of its bytes.
  std::size_t unknown_begin_ = 0, unknown_end_ = 0;
  bool after_unknown_ = false;  // true: the last token that was emitted stands for an unknown character
};

}  // namespace tessera::detail
