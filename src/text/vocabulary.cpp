#include "text/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/error.hpp"
#include "text/byte_alphabet.hpp"
#include "text/utf8.hpp"

namespace tessera::detail {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

std::uint64_t read_u64(const char* at, std::size_t size) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, size);
  return word;
}

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "<0x0A>" -> 10
std::optional<unsigned char> byte_of(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

// The bytes of all strings of an array: each is a u64 length and its text.
std::uint64_t text_bytes(const GgufArray& strings) noexcept { return strings.bytes().size() - 8 * strings.size(); }

}  // namespace

std::size_t table_slots(std::size_t count) noexcept { return std::bit_ceil(count + count / 2 + 1); }

std::uint64_t hash_bytes(std::string_view bytes) noexcept {
  std::uint64_t h = bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) h = hash_mix(h ^ read_u64(at, 8));
  if (left > 0) h = hash_mix(h ^ read_u64(at, left));
  return hash_mix(h);
}

Result<Vocabulary> Vocabulary::load(const GgufFile& file, TokenizerModel model) {
  Vocabulary v;
  TESSERA_TRY_STATUS(v.load_texts(file));
  TESSERA_TRY_STATUS(v.load_special_ids(file, model));
  TESSERA_TRY_STATUS(v.load_types(file, model));
  if (model == TokenizerModel::llama) TESSERA_TRY_STATUS(v.load_scores(file));
  v.find_byte_tokens(model);
  v.make_pieces(model);
  return v;
}

std::uint64_t Vocabulary::plan_bytes(const GgufFile& file, TokenizerModel model) noexcept {
  const auto tokens = file.array(kTokens);
  if (!tokens || tokens->type() != GgufType::string) return 0;
  const std::uint64_t count = tokens->size();
  const std::uint64_t scores = model == TokenizerModel::llama ? count * sizeof(float) : 0;
  return 2 * text_bytes(*tokens) + 2 * (count + 1) * sizeof(std::uint32_t) + count + scores +
         table_slots(count) * sizeof(std::uint32_t);
}

std::uint64_t Vocabulary::memory_bytes() const noexcept {
  return texts_.capacity() + pieces_.capacity() + kinds_.capacity() + scores_.capacity() * sizeof(float) +
         (text_offsets_.capacity() + piece_offsets_.capacity() + table_.capacity()) * sizeof(std::uint32_t);
}

Status Vocabulary::load_texts(const GgufFile& file) {
  TESSERA_TRY(const GgufArray tokens, file.array(kTokens));
  if (tokens.type() != GgufType::string) {
    return error_at(ErrorCode::corrupt_file, std::string(kTokens), "an array of {} where the tokens' texts should be",
                    to_string(tokens.type()));
  }
  const std::uint64_t total = text_bytes(tokens);
  if (tokens.size() == 0 || tokens.size() > std::numeric_limits<std::int32_t>::max() / 2 ||
      total >= std::numeric_limits<std::uint32_t>::max()) {
    return error_at(ErrorCode::corrupt_file, std::string(kTokens),
                    "{} tokens of {} bytes: a vocabulary has at least one token and less than 4 GiB", tokens.size(),
                    total);
  }
  const auto count = static_cast<std::size_t>(tokens.size());
  texts_.resize(static_cast<std::size_t>(total));
  text_offsets_.resize(count + 1);
  kinds_.resize(count);
  table_.assign(table_slots(count), kNoToken);

  const std::size_t mask = table_.size() - 1;
  std::uint32_t id = 0, at = 0;
  for (const std::string_view token : tokens.strings()) {
    std::copy(token.begin(), token.end(), texts_.begin() + at);
    at += static_cast<std::uint32_t>(token.size());
    text_offsets_[id + 1] = at;
    longest_text_ = std::max(longest_text_, token.size());
    if (!token.empty()) {
      std::size_t slot = hash_bytes(token) & mask;
      while (table_[slot] != kNoToken && text(table_[slot]) != token) slot = (slot + 1) & mask;
      if (table_[slot] == kNoToken) table_[slot] = id;  // of tokens with the same text the first is found
    }
    ++id;
  }
  return {};
}

Status Vocabulary::load_types(const GgufFile& file, TokenizerModel model) {
  if (file.find(kTypes) == nullptr) {
    // Old converters wrote none. What the texts and the special ids say is enough.
    for (std::uint32_t id = 0; id < size(); ++id) {
      const bool byte = model == TokenizerModel::llama && byte_of(text(id));
      set_type(id, byte ? TokenType::byte : TokenType::normal);
    }
    for (const std::uint32_t id : {bos_, eos_}) {
      if (id != kNoToken) set_type(id, TokenType::control);
    }
    if (unknown_ != kNoToken && type(unknown_) == TokenType::normal) set_type(unknown_, TokenType::unknown);
    return {};
  }
  TESSERA_TRY(const GgufArray types, file.array(kTypes));
  if (!types.is_integer() || types.size() < size()) {
    return error_at(ErrorCode::corrupt_file, std::string(kTypes),
                    "{} values of type {} for {} tokens: there is one integer for each", types.size(),
                    to_string(types.type()), size());
  }
  for (std::uint32_t id = 0; id < size(); ++id) {
    const std::int64_t value = types.integer(id);
    if (value < 0 || value > 6) {
      return error_at(ErrorCode::corrupt_file, std::string(kTypes), "token {} has type {}: types are 1 to 6", id,
                      value);
    }
    set_type(id, static_cast<TokenType>(value));
  }
  return {};
}

Status Vocabulary::load_scores(const GgufFile& file) {
  TESSERA_TRY(const GgufArray scores, file.array(kScores));
  if (!scores.is_number() || scores.size() < size()) {
    return error_at(ErrorCode::corrupt_file, std::string(kScores),
                    "{} values of type {} for {} tokens: there is one number for each", scores.size(),
                    to_string(scores.type()), size());
  }
  scores_.resize(size());
  for (std::uint32_t id = 0; id < size(); ++id) {
    scores_[id] = static_cast<float>(scores.number(id)) + 0.0f;  // -0 becomes 0: they rank alike
    if (std::isnan(scores_[id])) {
      return error_at(ErrorCode::corrupt_file, std::string(kScores), "the score of token {} is not a number", id);
    }
  }
  return {};
}

Status Vocabulary::load_special_ids(const GgufFile& file, TokenizerModel model) {
  // SentencePiece's own defaults; a byte-level vocabulary has none.
  const auto fallback = [&](std::uint32_t id) { return model == TokenizerModel::llama && id < size() ? id : kNoToken; };
  const auto load = [&](std::string_view key, std::uint32_t absent) -> Result<std::uint32_t> {
    if (file.find(key) == nullptr) return absent;
    TESSERA_TRY(const std::uint64_t id, file.unsigned_integer(key));
    if (id == kNoToken) return kNoToken;  // how some converters say that there is none: -1 in 32 bits
    if (id >= size()) {
      return error_at(ErrorCode::corrupt_file, std::string(key), "token {} is not in a vocabulary of {}", id, size());
    }
    return static_cast<std::uint32_t>(id);
  };
  TESSERA_TRY(bos_, load("tokenizer.ggml.bos_token_id", fallback(1)));
  TESSERA_TRY(eos_, load("tokenizer.ggml.eos_token_id", fallback(2)));
  TESSERA_TRY(unknown_, load("tokenizer.ggml.unknown_token_id", fallback(0)));
  TESSERA_TRY(const std::uint32_t end_of_turn, load("tokenizer.ggml.eot_token_id", kNoToken));
  TESSERA_TRY(const std::uint32_t end_of_message, load("tokenizer.ggml.eom_token_id", kNoToken));
  for (const std::uint32_t id : {eos_, end_of_turn, end_of_message}) {
    if (id != kNoToken) set_ends_generation(id, true);
  }
  return {};
}

void Vocabulary::find_byte_tokens(TokenizerModel model) noexcept {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char plain[1] = {static_cast<char>(byte)};
    if (model == TokenizerModel::llama) {
      const char text[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
      byte_tokens_[byte] = find({text, 6});
      if (byte_tokens_[byte] == kNoToken) byte_tokens_[byte] = find_ordinary({plain, 1});
      continue;
    }
    const unsigned code = kByteToChar[byte];
    const char text[2] = {static_cast<char>(code < 0x80 ? code : 0xC0 | (code >> 6)),
                          static_cast<char>(0x80 | (code & 0x3F))};
    byte_tokens_[byte] = find_ordinary({text, code < 0x80 ? std::size_t{1} : std::size_t{2}});
  }
}

void Vocabulary::make_pieces(TokenizerModel model) {
  pieces_.resize(texts_.size());
  piece_offsets_.resize(text_offsets_.size());
  char* const begin = pieces_.data();
  char* at = begin;
  for (std::uint32_t id = 0; id < size(); ++id) {
    const std::string_view token = text(id);
    const TokenType kind = type(id);
    const bool plain = kind == TokenType::control || kind == TokenType::unknown || kind == TokenType::user_defined;
    if (const auto byte = byte_of(token); byte && kind == TokenType::byte) {
      *at++ = static_cast<char>(*byte);
    } else if (plain || (model == TokenizerModel::gpt2 && !read_bytes(token, at))) {
      at = std::copy(token.begin(), token.end(), at);  // a text outside the alphabet can only mean itself
    } else if (model == TokenizerModel::gpt2) {
      at += *read_bytes(token, at);
    } else {
      for (std::size_t i = 0; i < token.size();) {
        const bool space = token.substr(i).starts_with(kSpaceMark);
        *at++ = space ? ' ' : token[i];
        i += space ? kSpaceMark.size() : 1;
      }
    }
    piece_offsets_[id + 1] = static_cast<std::uint32_t>(at - begin);
  }
}

std::uint32_t Vocabulary::find(std::string_view wanted) const noexcept {
  if (wanted.empty() || wanted.size() > longest_text_) return kNoToken;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash_bytes(wanted) & mask; table_[slot] != kNoToken; slot = (slot + 1) & mask) {
    if (text(table_[slot]) == wanted) return table_[slot];
  }
  return kNoToken;
}

bool Vocabulary::is_ordinary(std::uint32_t id) const noexcept {
  const TokenType kind = type(id);
  return kind != TokenType::control && kind != TokenType::unknown && kind != TokenType::byte;
}

std::uint32_t Vocabulary::find_ordinary(std::string_view wanted) const noexcept {
  const std::uint32_t id = find(wanted);
  return id != kNoToken && is_ordinary(id) ? id : kNoToken;
}

void Vocabulary::set_type(std::uint32_t id, TokenType type) noexcept {
  kinds_[id] = static_cast<std::uint8_t>((kinds_[id] & ~kType) | static_cast<std::uint8_t>(type));
}

void Vocabulary::set_ends_generation(std::uint32_t id, bool ends) noexcept {
  kinds_[id] = static_cast<std::uint8_t>(ends ? kinds_[id] | kEndOfGeneration : kinds_[id] & ~kEndOfGeneration);
}

}  // namespace tessera::detail
