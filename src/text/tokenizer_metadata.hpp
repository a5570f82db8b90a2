// The settings of a model's tokenizer. All settings are read and checked before anything is built from them, so later code need not check
// again. Reading them allocates no memory that grows with the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>

#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"

namespace tessera::detail {

inline constexpr std::uint32_t kNoToken = 0xFFFFFFFFu;

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, which stands for a space in SentencePiece's vocabularies

// The rules of encoding, apart from the vocabulary. The tokenizer keeps these rules.
struct TokenizerRules {
  TokenizerModel model = TokenizerModel::none;
  const PreTokenizerSpec* pre = nullptr;  // only for `gpt2`
  bool pre_is_assumed = false;            // true: the file names no pre-tokenizer, so one was assumed
  bool add_bos = false, add_eos = false, add_space_prefix = false, strip_after_special = false;
  bool remove_extra_spaces = false;  // only for `unigram`
};

// The tokenizer's settings, as views into the model source's memory.
struct TokenizerMetadata {
  TokenizerRules rules;
  ValueList tokens{ValueType::string, 0, {}};
  std::optional<ValueList> types;   // integers 0 to 6, one for each token or more; files of old converters have none
  std::optional<ValueList> scores;  // for `llama` and `unigram`: numbers without NaN, one for each token or more
  std::optional<ValueList> merges;  // for `gpt2` and `gemma4`: texts "left right"
  std::optional<ValueList> suppressed;  // ids of tokens that are never drawn, all within the vocabulary
  std::string_view charsmap;        // for `unigram`: a table that has passed Charsmap::check()

  // Ids of tokens; each is within the vocabulary, or kNoToken.
  std::uint32_t bos = kNoToken, eos = kNoToken, unknown = kNoToken, end_of_turn = kNoToken, end_of_message = kNoToken;

  std::optional<ValueList> ends;     // ids of further tokens that end a generation, all within the vocabulary
  const Decoder* decoder = nullptr;  // of a tokenizer.json: makes the tokens' pieces
  std::span<const std::uint32_t> outside;  // of a tokenizer.json: ids of added tokens that its model does not have

  // Upper bounds: how many tokens SpecialTokens looks for, and how many bytes their texts have.
  std::uint64_t special_count = 0, special_bytes = 0;

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens.size()); }
  [[nodiscard]] std::uint64_t text_bytes() const noexcept { return tokens.text_bytes(); }
};

// Reads and checks the settings: first that the lists have matching lengths, then each value.
[[nodiscard]] Result<TokenizerMetadata> read_tokenizer_metadata(const Settings& settings, const std::stop_token& stop);

// Read a setting that is a token id (read_token_id) or a list of token ids (read_token_list). `tokens`: the size of the vocabulary. If
// the setting is absent: read_token_id returns `absent`, or kNoToken if `absent` is not a token of the vocabulary; read_token_list
// returns nullopt. Errors: corrupt_file, a value is not an id of the vocabulary; cancelled.
[[nodiscard]] Result<std::uint32_t> read_token_id(const Settings& settings, Setting setting, std::uint32_t tokens,
                                                  std::uint32_t absent = kNoToken);
[[nodiscard]] Result<std::optional<ValueList>> read_token_list(const Settings& settings, Setting setting, std::uint32_t tokens,
                                                               const std::stop_token& stop);

// Returns whether `stop` was requested. Looks at `stop` only once in 65,536 steps, so loops over a file's lists can call this function in
// each step.
[[nodiscard]] inline bool is_stopped(const std::stop_token& stop, std::uint64_t step) noexcept {
  return (step & 0xFFFFu) == 0 && stop.stop_requested();
}
[[nodiscard]] Error loading_stopped() noexcept;

// Returns the byte that a text such as "<0x0A>" stands for (10). `llama` vocabularies write bytes in this form. nullopt: the text has
// another form.
[[nodiscard]] std::optional<unsigned char> byte_of(std::string_view text) noexcept;

[[nodiscard]] constexpr bool is_special(TokenType type) noexcept {
  return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
}

}  // namespace tessera::detail
