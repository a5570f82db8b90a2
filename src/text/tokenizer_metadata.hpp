// The settings of a model's tokenizer, read and checked as a whole before anything is built. Values that come from here need no further
// checks, and reading them takes no memory that grows with the file.
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

// The rules beside the vocabulary, which the tokenizer keeps.
struct TokenizerRules {
  TokenizerModel model = TokenizerModel::none;
  const PreTokenizerSpec* pre = nullptr;  // `gpt2`
  bool pre_is_assumed = false;            // true: the file does not name it
  bool add_bos = false, add_eos = false, add_space_prefix = false, strip_after_special = false;
  bool remove_extra_spaces = false;  // `unigram`
};

// The tokenizer's settings, as views into the source.
struct TokenizerMetadata {
  TokenizerRules rules;
  ValueList tokens{ValueType::string, 0, {}};
  std::optional<ValueList> types;   // integers of 0 to 6, at least as many as tokens; old converters wrote none
  std::optional<ValueList> scores;  // `llama` and `unigram`: numbers, none of them NaN, at least as many as tokens
  std::optional<ValueList> merges;  // `gpt2` and `gemma4`: "left right"
  std::optional<ValueList> suppressed;  // integers: token ids within the vocabulary
  std::string_view charsmap;        // `unigram`: bytes that have passed Charsmap::check()

  // Token ids within the vocabulary, or kNoToken.
  std::uint32_t bos = kNoToken, eos = kNoToken, unknown = kNoToken, end_of_turn = kNoToken, end_of_message = kNoToken;

  // Number of tokens that SpecialTokens looks for, at most, and the bytes of their texts.
  std::uint64_t special_count = 0, special_bytes = 0;

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens.size()); }
  [[nodiscard]] std::uint64_t text_bytes() const noexcept { return tokens.text_bytes(); }
};

// Reads the settings. Compares the counts first, then looks at every value.
[[nodiscard]] Result<TokenizerMetadata> read_tokenizer_metadata(const Settings& settings, const std::stop_token& stop);

// Looks at `stop` every 65,536 steps, for loops whose length a file decides.
[[nodiscard]] inline bool is_stopped(const std::stop_token& stop, std::uint64_t step) noexcept {
  return (step & 0xFFFFu) == 0 && stop.stop_requested();
}
[[nodiscard]] Error loading_stopped() noexcept;

// Returns the byte of "<0x0A>" (10), as `llama` vocabularies spell bytes.
[[nodiscard]] std::optional<unsigned char> byte_of(std::string_view text) noexcept;

[[nodiscard]] constexpr bool is_special(TokenType type) noexcept {
  return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
}

}  // namespace tessera::detail
