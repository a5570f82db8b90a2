// Reads a tokenizer.json, the file of the crate `tokenizers` (Hugging Face). Everything is checked here, and nothing is built yet.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/json/json.hpp>

#include "text/pipeline/added_tokens.hpp"
#include "text/pipeline/word_bpe.hpp"
#include "text/pipeline/word_piece.hpp"
#include "text/rules/text_list.hpp"

namespace tessera::detail {

enum class WordModel : std::uint8_t { bpe, unigram, word_piece, word_level };

struct ModelRules {
  WordModel type = WordModel::bpe;
  WordBpeRules bpe;               // for bpe; byte_fallback also for unigram
  WordPieceRules word_piece;      // for word_piece
  std::optional<std::string> unknown_text;
  std::optional<std::int64_t> unknown_id;  // for unigram
};

struct TokenizerJson {
  ModelRules model;
  TextList tokens;                  // [id]: the token's text; empty: the file has no token with this id
  std::vector<std::int32_t> types;  // [id]: a TokenType
  std::vector<std::uint32_t> outside;  // ids of added tokens that the model does not have
  std::uint32_t unknown = kNoToken;    // the token that the model writes for unknown text
  TextList merges;                  // for bpe: left and right part of each merge, one after the other
  std::vector<double> scores;       // for unigram: [id]; tokens outside of the model have 0
  double least_score = 0;           // for unigram: the least score of the model's tokens
  std::vector<AddedToken> added;    // their texts are as in the file, not normalised
  Json normalizer, pre_tokenizer, post_processor, decoder;  // null: the file has none
  std::string options;              // the model's options as JSON, for comparisons

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return tokens.memory_bytes() + merges.memory_bytes() + (types.capacity() + outside.capacity()) * sizeof(std::int32_t) +
           scores.capacity() * sizeof(double);
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(types.size()); }
};

// Reads the text of a tokenizer.json. Memory: about the size of the vocabulary's texts. Errors: corrupt_file, the text is not JSON, or ids
// or values are wrong; unsupported, a construct that tessera does not have; cancelled. Errors name the place in the file.
[[nodiscard]] Result<TokenizerJson> read_tokenizer_json(std::string_view text, const std::stop_token& stop);

}  // namespace tessera::detail
