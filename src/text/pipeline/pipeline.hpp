// The tokenizer that a tokenizer.json describes, as the crate `tokenizers` runs it. First, added tokens are found. The text between them is
// normalised and split into words. The model encodes each word. Finally the frame puts tokens around the whole text. For models of bytes
// (GPT-2, Llama 3, Qwen) the words are encoded by the same code as the words of GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/text/tokenizer.hpp>

#include "text/models/byte_bpe.hpp"
#include "text/models/piece_order.hpp"
#include "text/models/unigram.hpp"
#include "text/pipeline/added_tokens.hpp"
#include "text/pipeline/decoder.hpp"
#include "text/pipeline/normalizer.hpp"
#include "text/pipeline/splitter.hpp"
#include "text/pipeline/word_bpe.hpp"
#include "text/pipeline/word_piece.hpp"
#include "text/rules/json/tokenizer_json.hpp"

namespace tessera::detail {

class Pipeline {
 public:
  // Makes everything that does not need the vocabulary. Errors: those of the rules, with their places in the file.
  [[nodiscard]] static Result<Pipeline> create(const TokenizerJson& json);
  // Makes the parts that need the vocabulary. Call it once, before encode(). `json`: the object that create() got.
  [[nodiscard]] Status finish(TokenizerJson& json, const Vocabulary& vocabulary, const std::stop_token& stop);
  // Returns an upper bound for the memory of the object after finish().
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerJson& json) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  [[nodiscard]] TokenizerModel model() const noexcept { return model_; }
  [[nodiscard]] const Decoder& decoder() const noexcept { return decoder_; }
  // Return the tokens that are put before a text, and the tokens that are put after it.
  [[nodiscard]] const std::vector<std::uint32_t>& front() const noexcept { return front_; }
  [[nodiscard]] const std::vector<std::uint32_t>& back() const noexcept { return back_; }
  [[nodiscard]] const PairFrame& pair_frame() const noexcept { return pair_frame_; }
  // Set whether `bos` is put before a text, and whether `eos` is put after it.
  void set_bos(std::uint32_t bos, bool adds);
  void set_eos(std::uint32_t eos, bool adds);

  // Appends the tokens of a text, without those of the frame. Errors: unsupported, a pattern takes too much work; invalid_argument, the
  // normal form is too long.
  [[nodiscard]] Status encode(std::string_view text, Special special, const Vocabulary& vocabulary, TokenList& out) const;

  // For a hash of the tokenizer: calls add(values) for all data on which the pipeline's results depend, except the vocabulary.
  template <class Add>
  void each_part(const Add& add) const {
    add(identity_), merges_.each_part(add), add(front_), add(back_);
    if (unigram_) add(unigram_->scores);
  }
  [[nodiscard]] bool same_rules(const Pipeline& other) const noexcept {
    return identity_ == other.identity_ && merges_ == other.merges_ && front_ == other.front_ && back_ == other.back_ &&
           unigram_.has_value() == other.unigram_.has_value() && (!unigram_ || unigram_->scores == other.unigram_->scores);
  }

 private:
  class Encoder;

  Normalizer normalizer_;
  Splitter splitter_;
  Decoder decoder_;
  AddedTokens plain_, normalized_;  // tokens that are found in the text as it is, and in the normalised text
  ModelRules rules_;
  TokenizerModel model_ = TokenizerModel::bpe;
  bool words_are_bytes_ = false;  // true: a byte-level BPE that has a token for each byte
  MergeTable merges_;
  MarkCuts cuts_;
  std::optional<UnigramModel> unigram_;
  PieceOrder texts_;  // for word_piece
  std::vector<std::uint32_t> front_, back_;
  PairFrame pair_frame_;
  std::string identity_;  // the rules as JSON
};

}  // namespace tessera::detail
