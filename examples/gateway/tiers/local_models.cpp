#include "tiers/local_models.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "failure.hpp"
#include "model_place.hpp"

namespace gateway {

using tessera::Engine;

namespace {

Engine load(const std::string& place, const tessera::EngineOptions& options) {
  return value(Engine::load(value(tessera::tool::model_place(place)), options));
}

}  // namespace

Embedder::Embedder(const std::string& place, const tessera::EngineOptions& options) : engine_(load(place, options)) {
  const std::array<std::string_view, 1> text = {"a"};
  const auto vectors = engine_.embed(text);
  if (!vectors) throw Failure(vectors.error().code(), fmt::format("{} gives no vectors of texts ({}): name an encoder, such as all-MiniLM-L6-v2", place, vectors.error().text()));
  dimensions_ = vectors->dimensions();
}

std::vector<float> Embedder::vector_of(std::string_view text) const {
  const std::array<std::string_view, 1> texts = {text};
  const auto vectors = engine_.embed(texts, {.long_text = tessera::LongText::refuse});
  if (!vectors) return {};
  const auto row = vectors->row(0);
  return {row.begin(), row.end()};
}

SentenceScorer::SentenceScorer(const std::string& place, const tessera::EngineOptions& options) : engine_(load(place, options)) {}

std::optional<std::vector<SentenceScore>> SentenceScorer::score(const std::vector<std::string_view>& sentences) const {
  std::vector<SentenceScore> scores;
  tessera::Session session;
  std::size_t room = 0;  // tokens for which the session still has room
  for (const std::string_view sentence : sentences) {
    const bool is_first = session.context() == 0;
    auto tokens = engine_.tokenizer().encode(sentence, {.bos = is_first ? tessera::Bos::as_model : tessera::Bos::never});
    if (!tokens) return std::nullopt;
    SentenceScore score{.tokens = tokens->size()};
    if (session.context() == 0 || tokens->size() > room) {  // a new session: it does not see the earlier sentences
      auto made = engine_.session();
      if (!made || tokens->size() > made->context()) return std::nullopt;
      session = *std::move(made);
      room = session.context();
    }
    room -= tokens->size();
    if (!tokens->empty()) {
      const auto logprobs = session.score(*tokens);
      if (!logprobs) return std::nullopt;
      for (const float logprob : *logprobs) {
        if (!std::isnan(logprob)) score.surprise -= static_cast<double>(logprob);  // NaN: the first token of a session
      }
    }
    scores.push_back(score);
  }
  return scores;
}

}  // namespace gateway
