// Engine::rerank(): scores documents for a query, by a cross-encoder's head or by a decoder's answer.
#include <tessera/embedding.hpp>

#include <algorithm>
#include <cctype>

#include <tessera/engine.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "core/math.hpp"
#include "engine/embed/text_reader.hpp"
#include "engine/states.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using detail::RowsOf;
using detail::TextReader;
using detail::TextTokens;

namespace {

// The texts of a call, as one list of tokens.
class TokenTexts {
 public:
  // `second`: value of TextTokens::second.
  void add(std::initializer_list<std::span<const Token>> parts, std::size_t second) {
    const std::size_t first = tokens_.size();
    for (const auto part : parts) tokens_.insert(tokens_.end(), part.begin(), part.end());
    places_.push_back({first, tokens_.size() - first, second});
  }
  [[nodiscard]] std::vector<TextTokens> texts() const {
    std::vector<TextTokens> texts;
    texts.reserve(places_.size());
    for (const Place& place : places_) texts.push_back({std::span(tokens_).subspan(place.first, place.size), place.second});
    return texts;
  }

 private:
  struct Place {
    std::size_t first, size, second;
  };
  std::vector<Token> tokens_;
  std::vector<Place> places_;
};

// Shortens two texts to at most `room` tokens together, by cutting their ends. If one text has at most room / 2 tokens, only the other text
// is cut. If both are longer, the shorter text keeps room / 2 tokens, and the longer text the rest.
void shorten(std::span<const Token>& a, std::span<const Token>& b, std::size_t room) noexcept {
  if (a.size() + b.size() <= room) return;
  const std::size_t half = room / 2, shorter = std::min(a.size(), b.size());
  const std::size_t kept = std::min(shorter, half), other = room - kept;
  if (a.size() <= b.size()) a = a.first(kept), b = b.first(std::min(other, b.size()));
  else b = b.first(kept), a = a.first(std::min(other, a.size()));
}

// Makes the texts for a cross-encoder, which reads query and document as a pair.
Result<TokenTexts> pairs_of(const Engine::State& state, std::string_view query, std::span<const std::string_view> documents, const RerankOptions& options) {
  const PairFrame& frame = state.tokenizer.pair_frame();
  if (frame.between.empty()) return make_error(ErrorCode::unsupported, "the model's tokenizer does not say how it joins a query and a document");
  if (!options.instruction.empty()) return make_error(ErrorCode::unsupported, "an instruction is given, but the model ({}) reads only a query and a document", state.model.spec.architecture);
  const std::size_t around = frame.front.size() + frame.between.size() + frame.back.size(), most = detail::most_tokens(state, options.most_tokens, true);
  if (most <= around + 1) {
    return make_error(ErrorCode::invalid_argument, "at most {} tokens are asked for; the tokenizer puts {} around the texts: allow more", most, around);
  }
  TESSERA_TRY(const std::vector<Token> asked, state.tokenizer.encode(query, {.bos = Bos::never}));
  TokenTexts texts;
  for (const std::string_view document : documents) {
    TESSERA_TRY(const std::vector<Token> told, state.tokenizer.encode(document, {.bos = Bos::never}));
    std::span<const Token> a = asked, b = told;
    shorten(a, b, most - around);
    const std::size_t second = frame.has_segments && state.model.spec.n_segments > 1 ? frame.front.size() + a.size() + frame.between.size() : 0;
    texts.add({frame.front, a, frame.between, b, frame.back}, second);
  }
  return texts;
}

// The prompt of Qwen3-Reranker (Zhang et al. 2025). The model answers "yes" or "no".
constexpr std::string_view kAskFront =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
    "answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
constexpr std::string_view kAskBack = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kUsualTask = "Given a web search query, retrieve relevant passages that answer the query";

Result<TokenTexts> questions_of(const Engine::State& state, std::string_view query, std::span<const std::string_view> documents, const RerankOptions& options) {
  const std::size_t most = detail::most_tokens(state, options.most_tokens, false);
  const EncodeOptions control{.bos = Bos::never, .special = Special::parse};
  TESSERA_TRY(const std::vector<Token> front, state.tokenizer.encode(kAskFront, control));
  TESSERA_TRY(const std::vector<Token> back, state.tokenizer.encode(kAskBack, control));
  if (most <= front.size() + back.size()) {
    return make_error(ErrorCode::invalid_argument, "at most {} tokens are asked for; the question alone has {}: allow more", most, front.size() + back.size());
  }
  const std::string task = options.instruction.empty() ? std::string(kUsualTask) : options.instruction;
  TokenTexts texts;
  for (const std::string_view document : documents) {
    TESSERA_TRY(const std::vector<Token> body,
                state.tokenizer.encode(fmt::format("<Instruct>: {}\n<Query>: {}\n<Document>: {}", task, query, document), {.bos = Bos::never}));
    const std::size_t room = most - front.size() - back.size();
    texts.add({front, std::span(body).first(std::min(room, body.size())), back}, 0);
  }
  return texts;
}

// Returns whether a decoder was trained to rank, according to its file's settings or its name.
bool is_reranker(const Engine::State& state) {
  const auto pooling = state.metadata.unsigned_integer(Setting::pooling);
  if (pooling && *pooling == 4) return true;
  std::string name = state.model.spec.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.find("rerank") != std::string::npos;
}

// Returns the probability of `yes`, if `yes` and `no` are the logits of the only two outcomes.
float share_of(float yes, float no) noexcept { return static_cast<float>(1.0 / (1.0 + math::exp(double{no} - double{yes}))); }

Result<std::vector<float>> read_scores(const Engine& engine, const std::shared_ptr<const Engine::State>& state, const TokenTexts& texts,
                                       TextReader::Wish wish, const std::stop_token& stop, const std::function<float(std::span<const float>)>& score) {
  std::vector<float> scores;
  TextReader reader(engine, state, wish, stop);
  TESSERA_TRY_STATUS(reader.read(texts.texts(), [&](std::size_t, std::span<const float> values) {
    scores.push_back(score(values));
    return Status();
  }));
  return scores;
}

}  // namespace

Result<std::vector<float>> Engine::rerank(std::string_view query, std::span<const std::string_view> documents,
                                          const RerankOptions& options) const noexcept {
  return guard([&]() -> Result<std::vector<float>> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    const detail::FpState fp_state;
    const ModelSpec& spec = state_->model.spec;
    if (state_->tokenizer.vocab_size() == 0) return make_error(ErrorCode::invalid_state, "the engine has no tokenizer, so it reads no texts");
    if (spec.n_scores > 2) {
      return make_error(ErrorCode::unsupported, "the model ({}) sorts texts into {} classes: which of them means that a document answers a query is not known",
                        spec.architecture, spec.n_scores);
    }
    if (spec.n_scores != 0 && spec.sight == Sight::both_sides) {
      TESSERA_TRY(const TokenTexts texts, pairs_of(*state_, query, documents, options));
      const TextReader::Wish wish{.output = detail::RowOutput::scores, .rows = RowsOf::first, .width = spec.n_scores};
      // A head with two outputs sorts texts into two classes, of which the second is "relevant". A head with one output gives the score.
      return read_scores(*this, state_, texts, wish, options.stop, [](std::span<const float> values) { return values.back(); });
    }
    if (!spec.has_logits) return make_error(ErrorCode::unsupported, "the model ({}) has no head that ranks: compare the vectors of the texts instead", spec.architecture);
    const auto yes = state_->tokenizer.find("yes"), no = state_->tokenizer.find("no");
    if (!yes || !no || !state_->tokenizer.find("<|im_start|>") || !is_reranker(*state_)) {
      return make_error(ErrorCode::unsupported, "the model ({}) does not rank: neither its files nor its name say that it answers \"yes\" or \"no\" as Qwen3-Reranker does",
                        spec.architecture);
    }
    TESSERA_TRY(const TokenTexts texts, questions_of(*state_, query, documents, options));
    const TextReader::Wish wish{.output = detail::RowOutput::logits, .rows = RowsOf::last, .width = spec.vocab_size};
    return read_scores(*this, state_, texts, wish, options.stop, [&](std::span<const float> logits) {
      return share_of(logits[static_cast<std::size_t>(*yes)], logits[static_cast<std::size_t>(*no)]);
    });
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
