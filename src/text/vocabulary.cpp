#include "text/vocabulary.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "text/end_of_generation.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/pipeline/decoder.hpp"

namespace tessera::detail {
namespace {

// Limits for the pieces that a decoder makes: this many bytes, and this many for each byte of the tokens' texts.
constexpr std::uint64_t kDecodedSmall = std::uint64_t{16} << 20, kMostDecoded = 8;

std::uint64_t read_u64(const char* at, std::size_t size) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, size);
  return word;
}

// Compares two texts in some fixed order: by length first, which is cheap and mostly decides.
std::strong_ordering order_of(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return a.size() <=> b.size();
  return std::memcmp(a.data(), b.data(), a.size()) <=> 0;
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes) noexcept {
  std::uint64_t h = bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) h = hash_mix(h ^ read_u64(at, 8));
  if (left > 0) h = hash_mix(h ^ read_u64(at, left));
  return hash_mix(h);
}

Result<Vocabulary> Vocabulary::load(const TokenizerMetadata& metadata, const std::stop_token& stop) {
  Vocabulary v;
  v.bos_ = metadata.bos;
  v.eos_ = metadata.eos;
  v.unknown_ = metadata.unknown;
  if (!v.load_texts(metadata, stop) || !v.load_types(metadata, stop)) return loading_stopped();
  if (metadata.scores && !v.load_scores(*metadata.scores, stop)) return loading_stopped();
  for (const std::uint32_t id : {metadata.eos, metadata.end_of_turn, metadata.end_of_message}) {
    if (id != kNoToken) v.set_ends_generation(id, true);
  }
  for (std::uint64_t i = 0; metadata.ends && i < metadata.ends->size(); ++i) {
    v.set_ends_generation(static_cast<std::uint32_t>(metadata.ends->integer(i)), true);
  }
  for (const std::uint32_t id : metadata.outside) v.set_outside(id);
  mark_end_of_generation(v);
  v.find_byte_tokens(metadata.rules.model);
  if (metadata.decoder != nullptr) {
    TESSERA_TRY_STATUS(v.decode_pieces(*metadata.decoder, stop));
  } else if (!v.make_pieces(metadata.rules.model, stop)) {
    return loading_stopped();
  }
  return v;
}

std::uint64_t Vocabulary::plan_bytes(const TokenizerMetadata& metadata) noexcept {
  const std::uint64_t count = metadata.size();
  const std::uint64_t scores = metadata.scores ? count * sizeof(float) : 0;
  return 2 * metadata.text_bytes() + 2 * (count + 1) * sizeof(std::uint32_t) + count + scores +
         HashedOrder::plan_bytes(count);
}

std::uint64_t Vocabulary::memory_bytes() const noexcept {
  return texts_.capacity() + pieces_.capacity() + kinds_.capacity() + scores_.capacity() * sizeof(float) +
         (text_offsets_.capacity() + piece_offsets_.capacity()) * sizeof(std::uint32_t) + by_text_.memory_bytes();
}

bool Vocabulary::load_texts(const TokenizerMetadata& metadata, const std::stop_token& stop) {
  const std::uint32_t count = metadata.size();
  texts_.resize(static_cast<std::size_t>(metadata.text_bytes()));
  text_offsets_.resize(std::size_t{count} + 1);
  kinds_.resize(count);
  std::uint32_t id = 0, at = 0;
  for (const std::string_view token : metadata.tokens.strings()) {
    if (is_stopped(stop, id)) return false;
    std::copy(token.begin(), token.end(), texts_.begin() + at);
    at += static_cast<std::uint32_t>(token.size());
    text_offsets_[++id] = at;
    longest_text_ = std::max(longest_text_, token.size());
  }
  const auto hash_of = [&](std::uint32_t token) -> std::optional<std::uint64_t> {
    if (text(token).empty()) return std::nullopt;
    return hash_bytes(text(token));
  };
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const std::strong_ordering order = order_of(text(a), text(b));
    return order < 0 || (order == 0 && a < b);
  };
  return by_text_.build(count, hash_of, before, stop);
}

bool Vocabulary::load_types(const TokenizerMetadata& metadata, const std::stop_token& stop) {
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (is_stopped(stop, id)) return false;
    if (metadata.types) {
      set_type(id, static_cast<TokenType>(metadata.types->integer(id)));
    } else {
      const bool byte = metadata.rules.model != TokenizerModel::gpt2 && byte_of(text(id));
      set_type(id, byte ? TokenType::byte : TokenType::normal);
    }
  }
  if (metadata.types) return true;
  // Files of old converters have no types. Then the types are derived from the tokens' texts and from the special ids.
  for (const std::uint32_t id : {bos_, eos_}) {
    if (id != kNoToken) set_type(id, TokenType::control);
  }
  if (unknown_ != kNoToken && type(unknown_) == TokenType::normal) set_type(unknown_, TokenType::unknown);
  return true;
}

bool Vocabulary::load_scores(const ValueList& scores, const std::stop_token& stop) {
  scores_.resize(size());
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (is_stopped(stop, id)) return false;
    scores_[id] = static_cast<float>(scores.number(id)) + 0.0f;  // adding 0 makes -0 to 0, so that the two compare equal as integers too
  }
  return true;
}

void Vocabulary::find_byte_tokens(TokenizerModel model) noexcept {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char plain[1] = {static_cast<char>(byte)};
    if (model != TokenizerModel::gpt2) {
      const char text[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
      byte_tokens_[byte] = find({text, 6});
      const bool says_it = byte_tokens_[byte] != kNoToken && !is_control(byte_tokens_[byte]);
      if (!says_it) byte_tokens_[byte] = find_ordinary({plain, 1});
      continue;
    }
    const unsigned code = kByteToChar[byte];
    const char text[2] = {static_cast<char>(code < 0x80 ? code : 0xC0 | (code >> 6)),
                          static_cast<char>(0x80 | (code & 0x3F))};
    byte_tokens_[byte] = find_ordinary({text, code < 0x80 ? std::size_t{1} : std::size_t{2}});
  }
}

bool Vocabulary::make_pieces(TokenizerModel model, const std::stop_token& stop) {
  pieces_.resize(texts_.size());
  piece_offsets_.resize(text_offsets_.size());
  char* const begin = pieces_.data();
  char* at = begin;
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (is_stopped(stop, id)) return false;
    const std::string_view token = text(id);
    const TokenType kind = type(id);
    if (is_control(id)) {
      // a control token adds nothing to a text
    } else if (const auto byte = byte_of(token); byte && kind == TokenType::byte) {
      *at++ = static_cast<char>(*byte);
    } else if (kind == TokenType::user_defined) {
      at = std::copy(token.begin(), token.end(), at);
    } else if (model == TokenizerModel::gpt2) {
      const auto bytes = read_bytes(token, at);
      // If the text is not in the alphabet of bytes, the piece is the text itself.
      at = bytes ? at + *bytes : std::copy(token.begin(), token.end(), at);
    } else {
      for (std::size_t i = 0; i < token.size();) {
        const bool space = token.substr(i).starts_with(kSpaceMark);
        *at++ = space ? ' ' : token[i];
        i += space ? kSpaceMark.size() : 1;
      }
    }
    piece_offsets_[id + 1] = static_cast<std::uint32_t>(at - begin);
  }
  return true;
}

Status Vocabulary::decode_pieces(const Decoder& decoder, const std::stop_token& stop) {
  TESSERA_TRY(Decoder::Runner runner, Decoder::Runner::create(decoder));
  piece_offsets_.resize(text_offsets_.size());
  std::uint64_t bytes = 0;
  for (const bool count : {true, false}) {  // counts the bytes first, so that the memory is taken at once
    if (!count) pieces_.reserve(static_cast<std::size_t>(bytes));
    for (std::uint32_t id = 0; id < size(); ++id) {
      if (is_stopped(stop, id)) return loading_stopped();
      std::string_view piece;
      if (!is_control(id)) {
        TESSERA_TRY(piece, runner.run(text(id), false));
      }
      bytes += count ? piece.size() : 0;
      if (bytes > kDecodedSmall + kMostDecoded * std::uint64_t{texts_.size()}) {
        return make_error(ErrorCode::unsupported, "the decoder makes more than {} times as many bytes of the tokens' texts", kMostDecoded);
      }
      if (count) continue;
      pieces_.insert(pieces_.end(), piece.begin(), piece.end());
      piece_offsets_[id + 1] = static_cast<std::uint32_t>(pieces_.size());
    }
  }
  return {};
}

std::uint32_t Vocabulary::find(std::string_view wanted) const noexcept {
  static_assert(kNoToken == HashedOrder::kNone);
  if (wanted.empty() || wanted.size() > longest_text_) return kNoToken;
  return by_text_.find(hash_bytes(wanted), [&](std::uint32_t id) { return order_of(text(id), wanted); });
}

std::uint32_t Vocabulary::find_ordinary(std::string_view wanted) const noexcept {
  const std::uint32_t id = find(wanted);
  return id != kNoToken && is_ordinary(id) ? id : kNoToken;
}

std::uint32_t Vocabulary::find_mergeable(std::string_view wanted) const noexcept {
  const std::uint32_t id = find(wanted);
  return id != kNoToken && !is_control(id) && (kinds_[id] & kOutside) == 0 ? id : kNoToken;
}

void Vocabulary::set_type(std::uint32_t id, TokenType type) noexcept {
  kinds_[id] = static_cast<std::uint8_t>((kinds_[id] & ~kType) | static_cast<std::uint8_t>(type));
}

void Vocabulary::set_ends_generation(std::uint32_t id, bool ends) noexcept {
  kinds_[id] = static_cast<std::uint8_t>(ends ? kinds_[id] | kEndOfGeneration : kinds_[id] & ~kEndOfGeneration);
}

}  // namespace tessera::detail
