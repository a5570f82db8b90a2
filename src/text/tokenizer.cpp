#include <tessera/text/tokenizer.hpp>

#include <algorithm>
#include <cctype>
#include <utility>

#include <tessera/text/detokenizer.hpp>

#include "support/printable.hpp"
#include "support/error.hpp"
#include "text/byte_alphabet.hpp"
#include "text/byte_bpe.hpp"
#include "text/end_of_generation.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/special_tokens.hpp"
#include "text/spm_bpe.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::size_t kLongestText = std::size_t{1} << 30;  // positions are 32 bits, and U+2581 triples a space

Result<TokenizerModel> model_of(const GgufFile& file) {
  TESSERA_TRY(const std::string_view name, file.string(kModel));
  if (name == "llama") return TokenizerModel::llama;
  if (name == "gpt2") return TokenizerModel::gpt2;
  return error_at(ErrorCode::unsupported, std::string(kModel),
                  "the tokenizer model '{}' is not known; those that are: llama, gpt2", printable(name));
}

std::optional<Token> token_or_none(std::uint32_t id) noexcept {
  if (id == kNoToken) return std::nullopt;
  return static_cast<Token>(id);
}

// Phi-3's tokenizer takes the white space after a special token as part of it (tokenizer.json, "rstrip"); no metadata
// tells, so llama.cpp goes by the name, and so do we.
bool strips_after_special(const GgufFile& file) {
  const auto name = file.string_or("general.name", "");
  if (!name) return false;
  std::string lower(name->substr(0, 256));
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

}  // namespace

struct Tokenizer::State {
  TokenizerModel model;
  Vocabulary vocabulary;
  SpecialTokens specials;
  SpaceCuts cuts;                   // llama
  std::optional<PreTokenizer> pre;  // gpt2
  MergeTable merges;                // gpt2
  bool add_bos, add_eos, add_space_prefix, strip_after_special;

  [[nodiscard]] Status encode_text(std::string_view text, Special special, std::vector<Token>& out) const;
  void encode_llama(std::string_view text, bool prefix, SpmBpe& bpe, std::string& escaped,
                    std::vector<Token>& out) const;
  [[nodiscard]] Status encode_gpt2(std::string_view text, PreTokenizer::Splitter& splitter, ByteBpe& bpe,
                                   std::string& spelled, std::vector<Token>& out) const;
  [[nodiscard]] std::size_t stripped_after(std::uint32_t id, std::string_view rest) const noexcept;
};

Tokenizer::Tokenizer() noexcept = default;
Tokenizer::Tokenizer(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) noexcept {
  return guard([&]() -> Result<Tokenizer> {
    TESSERA_TRY(const TokenizerModel model, model_of(file));
    const bool llama = model == TokenizerModel::llama;
    std::optional<PreTokenizer> pre;
    if (!llama) {
      TESSERA_TRY(const std::string_view name, file.string_or("tokenizer.ggml.pre", "default"));
      TESSERA_TRY(pre, PreTokenizer::create(name));
    }
    TESSERA_TRY(Vocabulary vocabulary, Vocabulary::load(file, model));
    mark_end_of_generation(vocabulary);
    MergeTable merges;
    if (!llama) {
      TESSERA_TRY(merges, MergeTable::load(file, vocabulary));
    }
    TESSERA_TRY(const bool add_bos,
                file.boolean_or("tokenizer.ggml.add_bos_token", llama || (pre && pre->spec().add_bos)));
    TESSERA_TRY(const bool add_eos, file.boolean_or("tokenizer.ggml.add_eos_token", false));
    TESSERA_TRY(const bool prefix, file.boolean_or("tokenizer.ggml.add_space_prefix", llama));
    SpecialTokens specials(vocabulary);
    const SpaceCuts cuts(vocabulary);
    return Tokenizer(std::make_shared<const State>(State{model, std::move(vocabulary), std::move(specials), cuts,
                                                         std::move(pre), std::move(merges), add_bos, add_eos,
                                                         prefix && llama, llama && strips_after_special(file)}));
  });
}

std::uint64_t Tokenizer::plan_bytes(const GgufFile& file) noexcept {
  // Absent or wrong metadata is an error of from_gguf(), which then holds nothing.
  const auto name = file.string(kModel);
  if (!name || (*name != "llama" && *name != "gpt2")) return 0;
  const TokenizerModel model = *name == "llama" ? TokenizerModel::llama : TokenizerModel::gpt2;
  const std::uint64_t vocabulary = Vocabulary::plan_bytes(file, model);
  if (vocabulary == 0) return 0;
  const std::uint64_t merging =
      model == TokenizerModel::gpt2 ? MergeTable::plan_bytes(file) + PreTokenizer::kPlannedBytes : 0;
  return sizeof(State) + vocabulary + SpecialTokens::plan_bytes(file) + merging;
}

std::uint64_t Tokenizer::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  return sizeof(State) + state_->vocabulary.memory_bytes() + state_->specials.memory_bytes() +
         state_->merges.memory_bytes() + (state_->pre ? state_->pre->memory_bytes() : 0);
}

Result<std::vector<Token>> Tokenizer::encode(std::string_view text, EncodeOptions options) const noexcept {
  return guard([&]() -> Result<std::vector<Token>> {
    if (state_ == nullptr) {
      return make_error(ErrorCode::invalid_state,
                        "there is no tokenizer: the model's file has none, or it was left out; give token ids");
    }
    if (text.size() > kLongestText) {
      return make_error(ErrorCode::invalid_argument, "a text of {} bytes; at most {} are encoded at once", text.size(),
                        kLongestText);
    }
    const std::uint32_t bos = state_->vocabulary.bos(), eos = state_->vocabulary.eos();
    if (options.bos == Bos::always && bos == kNoToken) {
      return make_error(ErrorCode::invalid_argument,
                        "this vocabulary has no BOS token: use Bos::as_model or Bos::never");
    }
    std::vector<Token> out;
    out.reserve(text.size() / 3 + 2);
    const bool as_model = options.bos == Bos::as_model;
    if (bos != kNoToken && (options.bos == Bos::always || (as_model && state_->add_bos))) {
      out.push_back(static_cast<Token>(bos));
    }
    TESSERA_TRY_STATUS(state_->encode_text(text, options.special, out));
    if (eos != kNoToken && as_model && state_->add_eos) out.push_back(static_cast<Token>(eos));
    return out;
  });
}

Status Tokenizer::State::encode_text(std::string_view text, Special special, std::vector<Token>& out) const {
  SpmBpe spm(vocabulary, cuts);
  ByteBpe bytes(vocabulary, merges);
  std::optional<PreTokenizer::Splitter> splitter;
  if (pre) {
    TESSERA_TRY(splitter, PreTokenizer::Splitter::create(*pre, text.size()));
  }
  std::string scratch;

  // Ordinary text between special tokens. The space prefix goes before text at the start or after a special token,
  // never before nothing (llama.cpp's is_prev_special).
  const auto encode_between = [&](std::string_view part) -> Status {
    if (part.empty()) return {};
    if (splitter) return encode_gpt2(part, *splitter, bytes, scratch, out);
    encode_llama(part, add_space_prefix, spm, scratch, out);
    return {};
  };
  std::size_t at = 0;
  for (const SpecialMatch& match : specials.find(vocabulary, text, special)) {
    if (match.begin > at) TESSERA_TRY_STATUS(encode_between(text.substr(at, match.begin - at)));
    out.push_back(static_cast<Token>(match.id));
    at = match.begin + match.size;
    at += stripped_after(match.id, text.substr(at));
  }
  return encode_between(text.substr(std::min(at, text.size())));
}

std::size_t Tokenizer::State::stripped_after(std::uint32_t id, std::string_view rest) const noexcept {
  const std::string_view name = vocabulary.text(id);
  if (!strip_after_special || name == "<unk>" || name == "<s>" || name == "<|endoftext|>") return 0;
  return std::min(rest.find_first_not_of(" \t\n\v\f\r"), rest.size());
}

void Tokenizer::State::encode_llama(std::string_view text, bool prefix, SpmBpe& bpe, std::string& escaped,
                                    std::vector<Token>& out) const {
  constexpr std::string_view space = "\xE2\x96\x81";
  escaped.assign(prefix ? space : std::string_view{});
  for (const char c : text) {
    if (c == ' ') {
      escaped.append(space);
    } else {
      escaped.push_back(c);
    }
  }
  bpe.encode(escaped, out);
}

Status Tokenizer::State::encode_gpt2(std::string_view text, PreTokenizer::Splitter& splitter, ByteBpe& bpe,
                                     std::string& spelled, std::vector<Token>& out) const {
  while (!text.empty()) {
    const Utf8Run run = utf8_run(text);
    if (!run.valid) {  // no pattern says what these bytes are: one word
      bpe.encode(text.substr(0, run.size), out);
      text.remove_prefix(run.size);
      continue;
    }
    TESSERA_TRY(const std::vector<std::uint32_t>* words, splitter.split(text.substr(0, run.size)));
    for (const std::uint32_t size : *words) {
      const std::string_view word = text.substr(0, size);
      text.remove_prefix(size);
      if (pre->spec().ignore_merges && word.size() <= vocabulary.longest_text()) {
        spelled.clear();
        spell_bytes(word, spelled);
        if (const std::uint32_t id = vocabulary.find_ordinary(spelled); id != kNoToken) {
          out.push_back(static_cast<Token>(id));
          continue;
        }
      }
      bpe.encode(word, out);
    }
  }
  return {};
}

Result<std::string> Tokenizer::decode(std::span<const Token> tokens, DecodeOptions options) const noexcept {
  return guard([&]() -> Result<std::string> {
    Detokenizer stream(*this, options);
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto piece = stream.push(tokens[i]);
      if (!piece) {
        Error error = std::move(piece).error();
        if (error.code() == ErrorCode::out_of_memory) return error;
        return error_at(error.code(), fmt::format("position {}", i), "{}", error.message());
      }
      text += *piece;
    }
    text += stream.finish();
    return text;
  });
}

std::string_view Tokenizer::piece(Token token) const noexcept {
  if (state_ == nullptr || !state_->vocabulary.contains(token)) return {};
  return state_->vocabulary.piece(static_cast<std::uint32_t>(token));
}

std::string_view Tokenizer::text(Token token) const noexcept {
  if (state_ == nullptr || !state_->vocabulary.contains(token)) return {};
  return state_->vocabulary.text(static_cast<std::uint32_t>(token));
}

std::optional<Token> Tokenizer::find(std::string_view text) const noexcept {
  return state_ == nullptr ? std::nullopt : token_or_none(state_->vocabulary.find(text));
}

std::size_t Tokenizer::vocab_size() const noexcept { return state_ == nullptr ? 0 : state_->vocabulary.size(); }

TokenType Tokenizer::type(Token token) const noexcept {
  if (state_ == nullptr || !state_->vocabulary.contains(token)) return TokenType::undefined;
  return state_->vocabulary.type(static_cast<std::uint32_t>(token));
}

TokenizerModel Tokenizer::model() const noexcept {
  return state_ == nullptr ? TokenizerModel::none : state_->model;
}
std::string_view Tokenizer::pre_tokenizer() const noexcept {
  return state_ != nullptr && state_->pre ? state_->pre->spec().name : std::string_view{};
}
std::optional<Token> Tokenizer::bos() const noexcept {
  return state_ == nullptr ? std::nullopt : token_or_none(state_->vocabulary.bos());
}
std::optional<Token> Tokenizer::eos() const noexcept {
  return state_ == nullptr ? std::nullopt : token_or_none(state_->vocabulary.eos());
}
bool Tokenizer::adds_bos() const noexcept {
  return state_ != nullptr && state_->add_bos && state_->vocabulary.bos() != kNoToken;
}
bool Tokenizer::adds_eos() const noexcept {
  return state_ != nullptr && state_->add_eos && state_->vocabulary.eos() != kNoToken;
}
bool Tokenizer::adds_space_prefix() const noexcept { return state_ != nullptr && state_->add_space_prefix; }

bool Tokenizer::is_end_of_generation(Token token) const noexcept {
  return state_ != nullptr && state_->vocabulary.contains(token) &&
         state_->vocabulary.ends_generation(static_cast<std::uint32_t>(token));
}

}  // namespace tessera
