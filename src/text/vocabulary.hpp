// The tokens of a vocabulary: texts, types, scores, and the index that finds a token by its text. They are stored in flat arrays whose
// sizes follow from counts in the metadata. So the library can say exactly how much memory a vocabulary takes before it reads the
// vocabulary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <vector>

#include "text/models/hashed_order.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {

[[nodiscard]] std::uint64_t hash_bytes(std::string_view bytes) noexcept;
[[nodiscard]] constexpr std::uint64_t hash_mix(std::uint64_t h) noexcept {
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return h ^ (h >> 29);
}

class Vocabulary {
 public:
  // Makes the vocabulary from the metadata. Error: cancelled, `stop` was requested.
  [[nodiscard]] static Result<Vocabulary> load(const TokenizerMetadata& metadata, const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  bool operator==(const Vocabulary&) const = default;

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(kinds_.size()); }
  [[nodiscard]] bool contains(Token token) const noexcept {
    return token >= 0 && static_cast<std::uint32_t>(token) < size();
  }
  [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept { return view(texts_, text_offsets_, id); }
  // Returns the bytes that the token adds to a text: none for control and unknown tokens.
  [[nodiscard]] std::string_view piece(std::uint32_t id) const noexcept { return view(pieces_, piece_offsets_, id); }
  [[nodiscard]] TokenType type(std::uint32_t id) const noexcept { return static_cast<TokenType>(kinds_[id] & kType); }
  [[nodiscard]] bool is_control(std::uint32_t id) const noexcept {
    return type(id) == TokenType::control || type(id) == TokenType::unknown;
  }
  [[nodiscard]] float score(std::uint32_t id) const noexcept { return scores_[id]; }
  [[nodiscard]] bool ends_generation(std::uint32_t id) const noexcept { return (kinds_[id] & kEndOfGeneration) != 0; }
  [[nodiscard]] std::size_t longest_text() const noexcept { return longest_text_; }

  // Returns the token with this text; if there are several, the one with the lowest id. kNoToken: there is none.
  [[nodiscard]] std::uint32_t find(std::string_view text) const noexcept;
  // Does the same as find(), but finds only tokens that ordinary text may become: no control, unknown or byte tokens (in SentencePiece
  // they are never the result of a merge), and no tokens that set_outside() has marked.
  [[nodiscard]] std::uint32_t find_ordinary(std::string_view text) const noexcept;
  // Does the same as find_ordinary(), but finds byte tokens too: in a tokenizer.json, merges may have byte tokens as parts.
  [[nodiscard]] std::uint32_t find_mergeable(std::string_view text) const noexcept;
  [[nodiscard]] bool is_ordinary(std::uint32_t id) const noexcept {
    return !is_control(id) && type(id) != TokenType::byte && (kinds_[id] & kOutside) == 0;
  }

  [[nodiscard]] std::uint32_t bos() const noexcept { return bos_; }
  [[nodiscard]] std::uint32_t eos() const noexcept { return eos_; }
  // Returns the token for a single byte; kNoToken if there is none. Its text is <0x0A> (llama, unigram, gemma4), or the byte's letter in
  // GPT-2's alphabet (gpt2).
  [[nodiscard]] std::uint32_t byte_token(unsigned char byte) const noexcept { return byte_tokens_[byte]; }
  // Returns the unknown token, which stands for characters and bytes that no other token has. Returns kNoToken if the vocabulary has no
  // unknown token, or if the unknown token is a control token. (Some vocabularies name their end-of-text token as the unknown token, and
  // no text may become the end-of-text token.)
  [[nodiscard]] std::uint32_t stand_in() const noexcept {
    return unknown_ == kNoToken || type(unknown_) == TokenType::control ? kNoToken : unknown_;
  }

  void set_type(std::uint32_t id, TokenType type) noexcept;
  void set_ends_generation(std::uint32_t id, bool ends) noexcept;
  // Marks a token as an added token outside of the model's vocabulary: ordinary text never becomes this token.
  void set_outside(std::uint32_t id) noexcept { kinds_[id] |= kOutside; }

  // Calls add(values) for each array of the vocabulary, for a hash over all of them.
  template <class Add>
  void each_part(const Add& add) const {
    add(texts_), add(text_offsets_), add(kinds_), add(scores_);
    add(std::array{bos_, eos_, unknown_});
  }

 private:
  static constexpr std::uint8_t kType = 0x0F;
  static constexpr std::uint8_t kOutside = 0x40;
  static constexpr std::uint8_t kEndOfGeneration = 0x80;

  static std::string_view view(const std::vector<char>& blob, const std::vector<std::uint32_t>& offsets,
                               std::uint32_t id) noexcept {
    return {blob.data() + offsets[id], offsets[id + 1] - offsets[id]};
  }
  [[nodiscard]] bool load_texts(const TokenizerMetadata& metadata, const std::stop_token& stop);
  [[nodiscard]] bool load_types(const TokenizerMetadata& metadata, const std::stop_token& stop);
  [[nodiscard]] bool load_scores(const ValueList& scores, const std::stop_token& stop);
  [[nodiscard]] bool make_pieces(TokenizerModel model, const std::stop_token& stop);
  [[nodiscard]] Status decode_pieces(const Decoder& decoder, const std::stop_token& stop);
  void find_byte_tokens(TokenizerModel model) noexcept;

  std::vector<char> texts_;
  std::vector<char> pieces_;  // as many bytes as texts_, because no piece is longer than its text. A decoder's pieces may be longer
  std::vector<std::uint32_t> text_offsets_, piece_offsets_;  // [size + 1]
  std::vector<std::uint8_t> kinds_;                          // [size]
  std::vector<float> scores_;                                // [size]; only for `llama` and `unigram`
  HashedOrder by_text_;                                      // finds tokens by their texts
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::size_t longest_text_ = 0;
  std::uint32_t bos_ = kNoToken, eos_ = kNoToken, unknown_ = kNoToken;
};

}  // namespace tessera::detail
