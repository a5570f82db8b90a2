// What a model's settings say about its tokenizer, read and checked as a whole before anything is built: what comes from
// here needs no further checks, and reading it takes no memory that grows with the file.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"

namespace tessera::detail {

inline constexpr std::uint32_t kNoToken = 0xFFFFFFFFu;

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

// What stays of the metadata beside the vocabulary.
struct TokenizerRules {
  TokenizerModel model = TokenizerModel::none;
  const PreTokenizerSpec* pre = nullptr;  // `gpt2`
  bool pre_is_assumed = false;            // the file does not say
  bool add_bos = false, add_eos = false, add_space_prefix = false, strip_after_special = false;
  bool remove_extra_spaces = false;  // `unigram`
};

// Views into the source.
struct TokenizerMetadata {
  TokenizerRules rules;
  ValueList tokens{ValueType::string, 0, {}};
  std::optional<ValueList> types;   // integers of 0 to 6, at least as many as tokens; old converters wrote none
  std::optional<ValueList> scores;  // `llama` and `unigram`: numbers, none of them NaN, at least as many as tokens
  std::optional<ValueList> merges;  // `gpt2` and `gemma4`: "left right"
  std::optional<ValueList> suppressed;  // integers: token ids within the vocabulary
  std::string_view charsmap;        // `unigram`: what Charsmap::check() has passed

  // Token ids within the vocabulary, or kNoToken.
  std::uint32_t bos = kNoToken, eos = kNoToken, unknown = kNoToken, end_of_turn = kNoToken, end_of_message = kNoToken;

  // Of the tokens that SpecialTokens looks for, at most: their number, and the bytes of their texts.
  std::uint64_t special_count = 0, special_bytes = 0;

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens.size()); }
  [[nodiscard]] std::uint64_t text_bytes() const noexcept { return tokens.text_bytes(); }
};

// Counts are compared first, then every value is looked at.
[[nodiscard]] Result<TokenizerMetadata> read_tokenizer_metadata(const Settings& settings, const std::stop_token& stop);

// For loops over as many values as a file likes: looks at `stop` every 65,536 steps.
[[nodiscard]] inline bool is_stopped(const std::stop_token& stop, std::uint64_t step) noexcept {
  return (step & 0xFFFFu) == 0 && stop.stop_requested();
}
[[nodiscard]] Error loading_stopped() noexcept;

// "<0x0A>" -> 10, which is how `llama` vocabularies spell a byte.
[[nodiscard]] std::optional<unsigned char> byte_of(std::string_view text) noexcept;

[[nodiscard]] constexpr bool is_special(TokenType type) noexcept {
  return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
}

}  // namespace tessera::detail
