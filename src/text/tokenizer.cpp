#include <tessera/text/tokenizer.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <tessera/extend/text/detokenizer.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/hasher.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/models/byte_bpe.hpp"
#include "text/models/raw_bpe.hpp"
#include "text/models/spm_bpe.hpp"
#include "text/models/unigram.hpp"
#include "text/nfc.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/pre_tokenizer/pre_tokenizer.hpp"
#include "text/rules/json_metadata.hpp"
#include "text/rules/sentencepiece.hpp"
#include "text/rules/word_pieces.hpp"
#include "text/special_tokens.hpp"
#include "text/token_list.hpp"
#include "text/tokenizer_metadata.hpp"
#include "core/utf8.hpp"
#include "text/vocabulary.hpp"

namespace tessera {

using namespace detail;

namespace {

constexpr std::size_t kLongestInput = std::size_t{1} << 30;  // in bytes; positions in a text are 32-bit numbers

std::optional<Token> token_or_none(std::uint32_t id) noexcept {
  if (id == kNoToken) return std::nullopt;
  return static_cast<Token>(id);
}

std::vector<Token> suppressed_by(const TokenizerMetadata& metadata) {
  std::vector<Token> tokens(metadata.suppressed ? metadata.suppressed->size() : 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(metadata.suppressed->integer(i));
  std::ranges::sort(tokens);
  return tokens;
}

// Reads the model from the setting sentencepiece_model, which has its bytes as a list of bytes or as a text.
Result<SentencePieceModel> read_sentencepiece(const Settings& settings, const std::stop_token& stop) {
  const std::optional<SettingValue> value = settings.find(Setting::sentencepiece_model);
  if (value && std::holds_alternative<ValueList>(*value)) {
    const ValueList bytes = std::get<ValueList>(*value);
    if (bytes.type() == ValueType::u8 || bytes.type() == ValueType::i8) {
      return SentencePieceModel::read({reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()}, stop);
    }
  }
  TESSERA_TRY(const std::string_view bytes, settings.string(Setting::sentencepiece_model));
  return SentencePieceModel::read(bytes, stop);
}

}  // namespace

struct [[gnu::visibility("hidden")]] Tokenizer::State {
  TokenizerRules rules;
  Vocabulary vocabulary;
  SpecialTokens specials;
  SpaceCuts cuts;                   // set for the models llama and gemma4
  std::optional<PreTokenizer> pre;  // set for the model gpt2
  MergeTable merges;                // set for the models gpt2 and gemma4
  std::optional<UnigramModel> unigram;
  std::vector<Token> suppressed;  // token ids that are never drawn, ascending
  std::optional<Pipeline> pipeline;  // set if the file is a tokenizer.json; then specials, cuts, pre, merges and unigram are not used
  Hash128 fingerprint;
  TextFrame frame = {};
  PairFrame pair_frame = {};

  [[nodiscard]] static Result<std::shared_ptr<State>> from_lists(const Settings& settings, const std::stop_token& stop);
  // `text`: the text of a tokenizer.json.
  [[nodiscard]] static Result<std::shared_ptr<State>> from_json(std::string_view text, const Settings& settings, const std::stop_token& stop);
  [[nodiscard]] static Result<TokenizerPlan> plan_lists(const Settings& settings, const std::stop_token& stop);
  [[nodiscard]] static Result<TokenizerPlan> plan_json(std::string_view text, const Settings& settings, const std::stop_token& stop);

  [[nodiscard]] Status encode_text(std::string_view text, Special special, TokenList& out) const;
  [[nodiscard]] Status encode_gpt2(std::string_view text, PreTokenizer::Splitter& splitter, ByteBpe& bpe, Nfc& nfc,
                                   std::string& spelled, TokenList& out) const;
  [[nodiscard]] std::size_t stripped_after(std::uint32_t id, std::string_view rest) const noexcept;
  [[nodiscard]] Hash128 make_fingerprint() const noexcept;
};

Tokenizer::Tokenizer() noexcept = default;
Tokenizer::Tokenizer(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<Tokenizer> Tokenizer::from_settings(const Settings& settings, const std::stop_token& stop) noexcept {
  return guard([&]() -> Result<Tokenizer> {
    TESSERA_TRY_STATUS(settings.status());
    if (settings.has(Setting::tokenizer_json)) {
      TESSERA_TRY(const std::string_view text, settings.string(Setting::tokenizer_json));
      TESSERA_TRY(std::shared_ptr<State> state, State::from_json(text, settings, stop));
      return Tokenizer(std::move(state));
    }
    if (detail::has_word_pieces(settings)) {
      TESSERA_TRY(const std::string text, detail::word_pieces_as_json(settings));
      TESSERA_TRY(std::shared_ptr<State> state, State::from_json(text, settings, stop));
      return Tokenizer(std::move(state));
    }
    if (settings.has(Setting::sentencepiece_model)) {
      TESSERA_TRY(const SentencePieceModel model, read_sentencepiece(settings, stop));
      TESSERA_TRY(std::shared_ptr<State> state, State::from_lists(SentencePieceModel::View(model, settings), stop));
      return Tokenizer(std::move(state));
    }
    TESSERA_TRY(std::shared_ptr<State> state, State::from_lists(settings, stop));
    return Tokenizer(std::move(state));
  });
}

Result<std::shared_ptr<Tokenizer::State>> Tokenizer::State::from_lists(const Settings& settings, const std::stop_token& stop) {
  TESSERA_TRY(const TokenizerMetadata metadata, read_tokenizer_metadata(settings, stop));
  std::optional<PreTokenizer> pre;
  if (metadata.rules.pre != nullptr) {
    TESSERA_TRY(pre, PreTokenizer::create(*metadata.rules.pre));
  }
  TESSERA_TRY(Vocabulary vocabulary, Vocabulary::load(metadata, stop));
  MergeTable merges;
  if (metadata.merges) {
    TESSERA_TRY(merges, MergeTable::load(*metadata.merges, vocabulary, stop));
  }
  std::optional<UnigramModel> unigram;
  if (metadata.rules.model == TokenizerModel::unigram) {
    TESSERA_TRY(unigram, UnigramModel::load(metadata, vocabulary, stop));
  }
  SpecialTokens specials(vocabulary);
  const SpaceCuts cuts(vocabulary);
  auto state = std::make_shared<State>(State{metadata.rules, std::move(vocabulary), std::move(specials), cuts, std::move(pre),
                                             std::move(merges), std::move(unigram), suppressed_by(metadata), std::nullopt, {}});
  state->fingerprint = state->make_fingerprint();
  const std::uint32_t bos = state->vocabulary.bos(), eos = state->vocabulary.eos();
  if (bos != kNoToken && state->rules.add_bos) state->frame.front.push_back(static_cast<Token>(bos));
  if (eos != kNoToken && state->rules.add_eos) state->frame.back.push_back(static_cast<Token>(eos));
  // Which tokens are put around and between two texts (for reranking): those of XLM-R, <s> first </s></s> second </s>. Models that mark
  // the second text by a segment number, such as BERT, do not come here: they have word pieces, and lists of word pieces are read as a
  // tokenizer.json, in from_json().
  state->pair_frame = {.front = state->frame.front, .between = state->frame.back, .back = state->frame.back};
  state->pair_frame.between.insert(state->pair_frame.between.end(), state->frame.back.begin(), state->frame.back.end());
  return state;
}

Result<std::shared_ptr<Tokenizer::State>> Tokenizer::State::from_json(std::string_view text, const Settings& settings,
                                                                         const std::stop_token& stop) {
  TESSERA_TRY(TokenizerJson json, read_tokenizer_json(text, stop));
  TESSERA_TRY(Pipeline pipeline, Pipeline::create(json));
  TESSERA_TRY(const TokenizerMetadata metadata, metadata_of(json, pipeline, settings, stop));
  TESSERA_TRY(Vocabulary vocabulary, Vocabulary::load(metadata, stop));
  std::vector<Token> suppressed = suppressed_by(metadata);
  const TokenizerRules rules = metadata.rules;
  json.tokens = TextList();  // the vocabulary has the texts
  TESSERA_TRY_STATUS(pipeline.finish(json, vocabulary, stop));
  auto state = std::make_shared<State>(
      State{rules, std::move(vocabulary), {}, {}, std::nullopt, {}, std::nullopt, std::move(suppressed), std::move(pipeline), {}});
  state->fingerprint = state->make_fingerprint();
  const auto tokens = [](const std::vector<std::uint32_t>& ids) { return std::vector<Token>(ids.begin(), ids.end()); };
  state->frame = {tokens(state->pipeline->front()), tokens(state->pipeline->back())};
  state->pair_frame = state->pipeline->pair_frame();
  return state;
}

Result<TokenizerPlan> Tokenizer::plan(const Settings& settings, const std::stop_token& stop) noexcept {
  return guard([&]() -> Result<TokenizerPlan> {
    TESSERA_TRY_STATUS(settings.status());
    if (settings.has(Setting::tokenizer_json)) {
      TESSERA_TRY(const std::string_view text, settings.string(Setting::tokenizer_json));
      return State::plan_json(text, settings, stop);
    }
    if (detail::has_word_pieces(settings)) {
      TESSERA_TRY(const std::string text, detail::word_pieces_as_json(settings));
      TESSERA_TRY(TokenizerPlan plan, State::plan_json(text, settings, stop));
      plan.bytes += text.capacity();
      return plan;
    }
    if (settings.has(Setting::sentencepiece_model)) {
      TESSERA_TRY(const SentencePieceModel model, read_sentencepiece(settings, stop));
      TESSERA_TRY(TokenizerPlan plan, State::plan_lists(SentencePieceModel::View(model, settings), stop));
      plan.bytes += model.memory_bytes();
      return plan;
    }
    return State::plan_lists(settings, stop);
  });
}

Result<TokenizerPlan> Tokenizer::State::plan_lists(const Settings& settings, const std::stop_token& stop) {
  TESSERA_TRY(const TokenizerMetadata metadata, read_tokenizer_metadata(settings, stop));
  const std::uint64_t merging =
      (metadata.merges ? MergeTable::plan_bytes(*metadata.merges) : 0) +
      (metadata.rules.pre != nullptr ? PreTokenizer::kPlannedBytes : 0);
  const std::uint64_t searching = metadata.rules.model == TokenizerModel::unigram ? UnigramModel::plan_bytes(metadata) : 0;
  const std::uint64_t suppressed = metadata.suppressed ? metadata.suppressed->size() * sizeof(Token) : 0;
  return TokenizerPlan{.tokens = metadata.size(),
                       .bytes = sizeof(State) + Vocabulary::plan_bytes(metadata) + SpecialTokens::plan_bytes(metadata) + merging + searching +
                                suppressed};
}

Result<TokenizerPlan> Tokenizer::State::plan_json(std::string_view text, const Settings& settings, const std::stop_token& stop) {
  TESSERA_TRY(const TokenizerJson json, read_tokenizer_json(text, stop));
  TESSERA_TRY(Pipeline pipeline, Pipeline::create(json));
  TESSERA_TRY(const TokenizerMetadata metadata, metadata_of(json, pipeline, settings, stop));
  const std::uint64_t suppressed = metadata.suppressed ? metadata.suppressed->size() * sizeof(Token) : 0;
  return TokenizerPlan{.tokens = metadata.size(),
                       .bytes = sizeof(State) + Vocabulary::plan_bytes(metadata) + Pipeline::plan_bytes(json) + suppressed + json.memory_bytes()};
}

// Returns a hash of everything that decides the results of encode() and decode().
Hash128 Tokenizer::State::make_fingerprint() const noexcept {
  Hasher128 hasher;
  const auto add = [&](const auto& values) { hasher.add(std::as_bytes(std::span(values))); };
  vocabulary.each_part(add);
  merges.each_part(add);
  if (pipeline) pipeline->each_part(add);
  if (unigram) {
    unigram->charsmap.each_part(add);
    add(std::array<std::uint32_t, 1>{rules.remove_extra_spaces});
  }
  if (rules.pre != nullptr) {
    for (const std::string_view pattern : rules.pre->patterns) add(pattern);
    if (rules.pre->nfc) add(std::string_view("nfc"));
  }
  const std::array<std::uint32_t, 6> options = {
      static_cast<std::uint32_t>(rules.model), rules.pre != nullptr && rules.pre->ignore_merges, rules.add_bos,
      rules.add_eos, rules.add_space_prefix, rules.strip_after_special};
  add(options);
  return hasher.digest();
}

Hash128 Tokenizer::fingerprint() const noexcept { return state_ == nullptr ? Hash128{} : state_->fingerprint; }

bool Tokenizer::operator==(const Tokenizer& other) const noexcept {
  if (state_ == other.state_) return true;
  if (state_ == nullptr || other.state_ == nullptr || state_->fingerprint != other.state_->fingerprint) return false;
  // A file can be made so that its hash equals the hash of another file. So the large parts are compared too.
  if (state_->vocabulary != other.state_->vocabulary || state_->merges != other.state_->merges) return false;
  if (state_->pipeline.has_value() != other.state_->pipeline.has_value()) return false;
  if (state_->pipeline && !state_->pipeline->same_rules(*other.state_->pipeline)) return false;
  // If one tokenizer has a unigram model, the other has one too, because the hash covers the kind of model.
  return !state_->unigram || state_->unigram->charsmap == other.state_->unigram->charsmap;
}

std::uint64_t Tokenizer::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  return sizeof(State) + state_->vocabulary.memory_bytes() + state_->specials.memory_bytes() +
         state_->merges.memory_bytes() + (state_->pre ? state_->pre->memory_bytes() : 0) +
         (state_->unigram ? state_->unigram->memory_bytes() : 0) + state_->suppressed.capacity() * sizeof(Token) +
         (state_->pipeline ? state_->pipeline->memory_bytes() : 0);
}

Result<std::vector<Token>> Tokenizer::encode(std::string_view text, EncodeOptions options) const noexcept {
  return guard([&]() -> Result<std::vector<Token>> {
    if (state_ == nullptr) return no_tokenizer_error();
    if (text.size() > kLongestInput) {
      return make_error(ErrorCode::invalid_argument, "a text of {} bytes; at most {} are encoded at once", text.size(),
                        kLongestInput);
    }
    const std::uint32_t bos = state_->vocabulary.bos(), eos = state_->vocabulary.eos();
    if (options.bos == Bos::always && bos == kNoToken) {
      return make_error(ErrorCode::invalid_argument,
                        "this vocabulary has no BOS token: use Bos::as_model or Bos::never");
    }
    TokenList out(text.size());
    const bool as_model = options.bos == Bos::as_model;
    if (state_->pipeline) {
      const Pipeline& pipeline = *state_->pipeline;
      if (options.bos == Bos::always) out.add(bos);
      for (std::size_t i = 0; as_model && i < pipeline.front().size(); ++i) out.add(pipeline.front()[i]);
      TESSERA_TRY_STATUS(pipeline.encode(text, options.special, state_->vocabulary, out));
      for (std::size_t i = 0; as_model && i < pipeline.back().size(); ++i) out.add(pipeline.back()[i]);
      return std::move(out).take();
    }
    if (bos != kNoToken && (options.bos == Bos::always || (as_model && state_->rules.add_bos))) out.add(bos);
    TESSERA_TRY_STATUS(state_->encode_text(text, options.special, out));
    if (eos != kNoToken && as_model && state_->rules.add_eos) out.add(eos);
    return std::move(out).take();
  });
}

Status Tokenizer::State::encode_text(std::string_view text, Special special, TokenList& out) const {
  SpmBpe spm(vocabulary, cuts);
  ByteBpe bytes(vocabulary, merges);
  RawBpe raw(vocabulary, merges, cuts);
  std::optional<Unigram> search;
  if (unigram) search.emplace(vocabulary, *unigram);
  Nfc nfc;
  std::optional<PreTokenizer::Splitter> splitter;
  if (pre) {
    TESSERA_TRY(splitter, PreTokenizer::Splitter::create(*pre, text.size() * (rules.pre->nfc ? Nfc::kMostGrowth : 1)));
  }
  std::string scratch;

  // Encodes the ordinary text between special tokens. A space is put before the text (if the vocabulary does that) at the beginning and
  // after each special token, but not before an empty text (as llama.cpp's is_prev_special).
  const auto encode_between = [&](std::string_view part) -> Status {
    if (part.empty()) return {};
    if (search) return search->encode(part, out);
    if (rules.model == TokenizerModel::gemma4) {
      raw.encode(part, out);
      return {};
    }
    if (splitter) return encode_gpt2(part, *splitter, bytes, nfc, scratch, out);
    if (rules.add_space_prefix) {
      // The added space may merge with the first word. So copy the text up to the first position where it can be cut, with the space in
      // front.
      const std::size_t end = cuts.next(part, 0);
      scratch.assign(1, ' ');
      scratch.append(part.substr(0, end));
      spm.encode(scratch, out);
      part.remove_prefix(end);
    }
    spm.encode(part, out);
    return {};
  };
  std::size_t at = 0;
  SpecialTokens::Finder finder(specials, vocabulary, text, special);
  for (SpecialMatch match{}; finder.next(match);) {
    if (match.begin > at) TESSERA_TRY_STATUS(encode_between(text.substr(at, match.begin - at)));
    out.add(match.id);
    at = match.begin + match.size;
    at += stripped_after(match.id, text.substr(at));
  }
  return encode_between(text.substr(std::min(at, text.size())));
}

std::size_t Tokenizer::State::stripped_after(std::uint32_t id, std::string_view rest) const noexcept {
  const std::string_view name = vocabulary.text(id);
  if (!rules.strip_after_special || name == "<unk>" || name == "<s>" || name == "<|endoftext|>") return 0;
  return std::min(rest.find_first_not_of(" \t\n\v\f\r"), rest.size());
}

Status Tokenizer::State::encode_gpt2(std::string_view text, PreTokenizer::Splitter& splitter, ByteBpe& bpe,
                                     Nfc& nfc, std::string& spelled, TokenList& out) const {
  const auto encode_word = [&](std::string_view word) {
    if (rules.pre->ignore_merges && word.size() <= vocabulary.longest_text()) {
      spelled.clear();
      spell_bytes(word, spelled);
      if (const std::uint32_t id = vocabulary.find_ordinary(spelled); id != kNoToken) return out.add(id);
    }
    bpe.encode(word, out);
  };
  const PreTokenizer::Splitter::Word word = std::cref(encode_word);
  while (!text.empty()) {
    const Utf8Run run = utf8_run(text);
    const std::string_view part = text.substr(0, run.size);
    if (run.valid) {
      TESSERA_TRY_STATUS(splitter.split(rules.pre->nfc ? nfc.normalize(part) : part, word));
    } else {
      bpe.encode(part, out);  // patterns cannot match bytes that are not UTF-8, so they are encoded as one word
    }
    text.remove_prefix(run.size);
  }
  return {};
}

Result<std::string> Tokenizer::decode(std::span<const Token> tokens, DecodeOptions options) const noexcept {
  return guard([&]() -> Result<std::string> {
    if (state_ == nullptr) return no_tokenizer_error();
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

bool Tokenizer::is_control(Token token) const noexcept {
  return state_ != nullptr && state_->vocabulary.contains(token) &&
         state_->vocabulary.is_control(static_cast<std::uint32_t>(token));
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

const Decoder* Tokenizer::decoder() const noexcept {
  return state_ == nullptr || !state_->pipeline ? nullptr : &state_->pipeline->decoder();
}

std::size_t Tokenizer::vocab_size() const noexcept { return state_ == nullptr ? 0 : state_->vocabulary.size(); }

TokenType Tokenizer::type(Token token) const noexcept {
  if (state_ == nullptr || !state_->vocabulary.contains(token)) return TokenType::undefined;
  return state_->vocabulary.type(static_cast<std::uint32_t>(token));
}

TokenizerModel Tokenizer::model() const noexcept {
  return state_ == nullptr ? TokenizerModel::none : state_->rules.model;
}
std::string_view Tokenizer::pre_tokenizer() const noexcept {
  return state_ != nullptr && state_->rules.pre != nullptr ? state_->rules.pre->name : std::string_view{};
}
bool Tokenizer::pre_tokenizer_is_assumed() const noexcept { return state_ != nullptr && state_->rules.pre_is_assumed; }
std::optional<Token> Tokenizer::bos() const noexcept {
  return state_ == nullptr ? std::nullopt : token_or_none(state_->vocabulary.bos());
}
std::optional<Token> Tokenizer::eos() const noexcept {
  return state_ == nullptr ? std::nullopt : token_or_none(state_->vocabulary.eos());
}
const TextFrame& Tokenizer::frame() const noexcept { return state_ == nullptr ? detail::empty_value<TextFrame>() : state_->frame; }
const PairFrame& Tokenizer::pair_frame() const noexcept { return state_ == nullptr ? detail::empty_value<PairFrame>() : state_->pair_frame; }
bool Tokenizer::adds_bos() const noexcept {
  return state_ != nullptr && state_->rules.add_bos && state_->vocabulary.bos() != kNoToken;
}
bool Tokenizer::adds_eos() const noexcept {
  return state_ != nullptr && state_->rules.add_eos && state_->vocabulary.eos() != kNoToken;
}
bool Tokenizer::adds_space_prefix() const noexcept { return state_ != nullptr && state_->rules.add_space_prefix; }

std::span<const Token> Tokenizer::suppressed() const noexcept {
  return state_ == nullptr ? std::span<const Token>() : state_->suppressed;
}

bool Tokenizer::is_end_of_generation(Token token) const noexcept {
  return state_ != nullptr && state_->vocabulary.contains(token) &&
         state_->vocabulary.ends_generation(static_cast<std::uint32_t>(token));
}

}  // namespace tessera
