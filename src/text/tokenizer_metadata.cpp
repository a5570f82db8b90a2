#include "text/tokenizer_metadata.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "text/end_of_generation.hpp"
#include "text/models/charsmap.hpp"
#include "text/models/piece_order.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint64_t kMostValues = std::numeric_limits<std::int32_t>::max() / 2;

// Limit for the bytes of all special tokens' texts. It bounds the memory of the automaton that finds these tokens: about 21 bytes for
// each byte of their texts. In the largest known vocabularies these texts have 100 KB.
constexpr std::uint64_t kMostSpecialBytes = std::uint64_t{2} << 20;

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Returns whether white space after a special token is dropped, as in Phi-3's tokenizer ("rstrip" in tokenizer.json). GGUF has no key for
// this, so the model's name decides, as in llama.cpp.
Result<bool> strips_after_special(const Settings& settings) {
  TESSERA_TRY(const std::string_view name, settings.string_or(Setting::name, ""));
  std::string lower(name.substr(0, 256));
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

class Reader {
 public:
  Reader(const Settings& settings, const std::stop_token& stop) : settings_(settings), stop_(stop) {}

  Result<TokenizerMetadata> run() {
    TESSERA_TRY_STATUS(read_model());
    TESSERA_TRY_STATUS(read_counts());
    TESSERA_TRY_STATUS(read_ids());
    TESSERA_TRY_STATUS(read_options());
    TESSERA_TRY_STATUS(check_tokens());
    TESSERA_TRY_STATUS(read_lists());
    if (m_.scores) TESSERA_TRY_STATUS(check_scores());
    if (m_.merges) TESSERA_TRY_STATUS(check_merges());
    if (is_unigram()) TESSERA_TRY_STATUS(read_charsmap());
    return m_;
  }

 private:
  template <class... Args>
  [[nodiscard]] Error corrupt(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::corrupt_file, settings_.called(setting), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] bool is_llama() const noexcept { return m_.rules.model == TokenizerModel::llama; }
  [[nodiscard]] bool has_merges() const noexcept {
    return m_.rules.model == TokenizerModel::gpt2 || m_.rules.model == TokenizerModel::gemma4;
  }
  [[nodiscard]] bool is_unigram() const noexcept { return m_.rules.model == TokenizerModel::unigram; }

  Status read_model() {
    TESSERA_TRY(const std::string_view name, settings_.string(Setting::tokenizer_model));
    if (name == "llama") {
      m_.rules.model = TokenizerModel::llama;
    } else if (name == "t5") {
      m_.rules.model = TokenizerModel::unigram;
    } else if (name == "gpt2") {
      m_.rules.model = TokenizerModel::gpt2;
    } else if (name == "gemma4") {
      m_.rules.model = TokenizerModel::gemma4;
    } else {
      return error_at(ErrorCode::unsupported, settings_.called(Setting::tokenizer_model),
                      "the tokenizer model '{}' is not known; known are: llama, gpt2, t5, gemma4, bert", printable(name));
    }
    if (m_.rules.model != TokenizerModel::gpt2) return {};
    m_.rules.pre_is_assumed = !settings_.has(Setting::pre_tokenizer);
    TESSERA_TRY(const std::string_view pre, settings_.string_or(Setting::pre_tokenizer, "default"));
    m_.rules.pre = find_pre_tokenizer(pre);
    if (m_.rules.pre != nullptr) return {};
    return error_at(ErrorCode::unsupported, settings_.called(Setting::pre_tokenizer), "the pre-tokenizer '{}' is not known; known are: {}",
                    printable(pre), known_pre_tokenizers());
  }

  Status read_counts() {
    TESSERA_TRY(m_.tokens, settings_.list(Setting::tokens));
    if (m_.tokens.type() != ValueType::string) {
      return corrupt(Setting::tokens, "an array of {} where the tokens' texts should be", to_string(m_.tokens.type()));
    }
    if (m_.tokens.size() == 0 || m_.tokens.size() > kMostValues ||
        m_.text_bytes() >= std::numeric_limits<std::uint32_t>::max()) {
      return corrupt(Setting::tokens, "{} tokens of {} bytes: a vocabulary has at least one token and less than 4 GiB",
                     m_.tokens.size(), m_.text_bytes());
    }
    if (settings_.has(Setting::token_types)) {
      TESSERA_TRY(m_.types, settings_.list(Setting::token_types));
      if (!m_.types->is_integer() || m_.types->size() < m_.size()) {
        return corrupt(Setting::token_types, "{} values of type {} for {} tokens: there is one integer for each", m_.types->size(),
                       to_string(m_.types->type()), m_.size());
      }
    }
    if (!has_merges()) {
      TESSERA_TRY(m_.scores, settings_.list(Setting::token_scores));
      if (!m_.scores->is_number() || m_.scores->size() < m_.size()) {
        return corrupt(Setting::token_scores, "{} values of type {} for {} tokens: there is one number for each", m_.scores->size(),
                       to_string(m_.scores->type()), m_.size());
      }
      return {};
    }
    TESSERA_TRY(m_.merges, settings_.list(Setting::merges));
    if (m_.merges->type() != ValueType::string || m_.merges->size() > kMostValues) {
      return corrupt(Setting::merges, "{} values of type {}: merges are strings", m_.merges->size(), to_string(m_.merges->type()));
    }
    return {};
  }

  // Reads a token id. If the file has none, the defaults are those of SentencePiece or T5; a byte-level vocabulary has no default.
  Result<std::uint32_t> read_id(Setting key, std::uint32_t llama_default = kNoToken, std::uint32_t t5_default = kNoToken) {
    const std::uint32_t absent = is_llama() ? llama_default : is_unigram() ? t5_default : kNoToken;
    return read_token_id(settings_, key, m_.size(), absent);
  }

  Status read_ids() {
    TESSERA_TRY(m_.bos, read_id(Setting::bos_token, 1));
    TESSERA_TRY(m_.eos, read_id(Setting::eos_token, 2, 1));
    TESSERA_TRY(m_.unknown, read_id(Setting::unknown_token, 0, 2));
    TESSERA_TRY(m_.end_of_turn, read_id(Setting::end_of_turn_token));
    TESSERA_TRY(m_.end_of_message, read_id(Setting::end_of_message_token));
    return {};
  }

  Status read_options() {
    const bool bos = is_llama() || (m_.rules.pre != nullptr && m_.rules.pre->add_bos);
    TESSERA_TRY(m_.rules.add_bos, settings_.boolean_or(Setting::add_bos, bos));
    TESSERA_TRY(m_.rules.add_eos, settings_.boolean_or(Setting::add_eos, is_unigram()));
    TESSERA_TRY(const bool prefix, settings_.boolean_or(Setting::add_space_prefix, is_llama()));
    m_.rules.add_space_prefix = prefix && !has_merges();
    // Some files say by mistake that there is no BOS, and without BOS this model writes nonsense. llama.cpp does the same.
    if (m_.rules.model == TokenizerModel::gemma4) m_.rules.add_bos = true;
    if (is_unigram()) {
      TESSERA_TRY(m_.rules.remove_extra_spaces, settings_.boolean_or(Setting::remove_extra_spaces, false));
    }
    if (!is_llama()) return {};
    TESSERA_TRY(m_.rules.strip_after_special, strips_after_special(settings_));
    return {};
  }

  // Checks the tokens' types, and counts the tokens and bytes that SpecialTokens will hold.
  Status check_tokens() {
    std::uint32_t id = 0;
    for (const std::string_view text : m_.tokens.strings()) {
      if (is_stopped(stop_, id)) return loading_stopped();
      bool special = id == m_.bos || id == m_.eos || id == m_.unknown;
      if (m_.types) {
        const std::int64_t type = m_.types->integer(id);
        if (type < 0 || type > 6) return corrupt(Setting::token_types, "token {} has type {}: types are 1 to 6", id, type);
        special = is_special(static_cast<TokenType>(type));
      }
      if (special) {
        m_.special_count += 1;
        m_.special_bytes += text.size();
      }
      ++id;
    }
    if (m_.special_bytes > kMostSpecialBytes) {
      return error_at(ErrorCode::unsupported, settings_.called(Setting::tokens),
                      "the texts of control and user-defined tokens have {} bytes; at most {} are read", m_.special_bytes,
                      kMostSpecialBytes);
    }
    m_.special_count += named_endings().count;  // these become control tokens, whatever type the file gives them
    m_.special_bytes += named_endings().bytes;
    return {};
  }

  Status read_lists() {
    TESSERA_TRY(m_.suppressed, read_token_list(settings_, Setting::suppressed_tokens, m_.size(), stop_));
    TESSERA_TRY(m_.ends, read_token_list(settings_, Setting::end_tokens, m_.size(), stop_));
    return {};
  }

  Status read_charsmap() {
    std::uint32_t id = 0;
    for (const std::string_view text : m_.tokens.strings()) {
      if (is_stopped(stop_, id)) return loading_stopped();
      if (text.size() > PieceOrder::kLongestPiece && !(m_.types && is_special(static_cast<TokenType>(m_.types->integer(id))))) {
        return error_at(ErrorCode::unsupported, settings_.called(Setting::tokens), "token {} has {} bytes; pieces of a unigram vocabulary have at most {}",
                        id, text.size(), PieceOrder::kLongestPiece);
      }
      ++id;
    }
    if (!settings_.has(Setting::charsmap)) return {};
    TESSERA_TRY(const ValueList map, settings_.list(Setting::charsmap));
    if (map.type() != ValueType::u8 && map.type() != ValueType::i8) {
      return corrupt(Setting::charsmap, "an array of {} where bytes should be", to_string(map.type()));
    }
    m_.charsmap = {reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()};
    if (const Status good = Charsmap::check(m_.charsmap); !good) {
      return error_at(good.error().code(), settings_.called(Setting::charsmap), "{}", good.error().message());
    }
    return {};
  }

  Status check_scores() {
    for (std::uint32_t id = 0; id < m_.size(); ++id) {
      if (is_stopped(stop_, id)) return loading_stopped();
      if (std::isnan(static_cast<float>(m_.scores->number(id)))) {
        return corrupt(Setting::token_scores, "the score of token {} is not a number", id);
      }
    }
    return {};
  }

  Status check_merges() {
    std::uint32_t index = 0;
    for (const std::string_view merge : m_.merges->strings()) {
      if (is_stopped(stop_, index)) return loading_stopped();
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == merge.size()) {
        return corrupt(Setting::merges, "merge {} is not two tokens with a space between them", index);
      }
      ++index;
    }
    return {};
  }

  const Settings& settings_;
  const std::stop_token& stop_;
  TokenizerMetadata m_;
};

}  // namespace

Result<TokenizerMetadata> read_tokenizer_metadata(const Settings& settings, const std::stop_token& stop) {
  return Reader(settings, stop).run();
}

Result<std::uint32_t> read_token_id(const Settings& settings, Setting setting, std::uint32_t tokens, std::uint32_t absent) {
  if (!settings.has(setting)) return absent < tokens ? absent : kNoToken;
  TESSERA_TRY(const std::uint64_t id, settings.unsigned_integer(setting));
  if (id == kNoToken) return kNoToken;  // -1 as a 32-bit number: some converters write it if there is no such token
  if (id < tokens) return static_cast<std::uint32_t>(id);
  return error_at(ErrorCode::corrupt_file, settings.called(setting), "token {} is not in a vocabulary of {}", id, tokens);
}

Result<std::optional<ValueList>> read_token_list(const Settings& settings, Setting setting, std::uint32_t tokens, const std::stop_token& stop) {
  if (!settings.has(setting)) return std::optional<ValueList>();
  TESSERA_TRY(const ValueList ids, settings.list(setting));
  if (ids.size() == 0) return std::optional(ids);  // some converters write an empty list, which has no element type
  if (!ids.is_integer() || ids.size() > tokens) {
    return error_at(ErrorCode::corrupt_file, settings.called(setting), "{} values of type {}: token ids of a vocabulary of {}", ids.size(),
                    to_string(ids.type()), tokens);
  }
  for (std::uint64_t i = 0; i < ids.size(); ++i) {
    if (is_stopped(stop, i)) return loading_stopped();
    const std::int64_t id = ids.integer(i);
    if (id >= 0 && static_cast<std::uint64_t>(id) < tokens) continue;
    return error_at(ErrorCode::corrupt_file, settings.called(setting), "token {} is not in a vocabulary of {}", id, tokens);
  }
  return std::optional(ids);
}

Error loading_stopped() noexcept {
  return make_error(ErrorCode::cancelled, "loading was cancelled at the tokenizer");
}

std::optional<unsigned char> byte_of(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace tessera::detail
