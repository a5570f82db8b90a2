// Checks of a run before it changes anything: its rows, their outputs, and their sessions.
#include <algorithm>

#include "core/error.hpp"
#include "core/token_error.hpp"
#include "engine/run/run.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

Error no_logits(const ModelSpec& spec) {
  return make_error(ErrorCode::unsupported, "the model ({}) gives embeddings and no logits, so it cannot write text: ask for the vectors of texts", spec.architecture);
}

Status Run::check_row(const Part& part, const RunRow& row) const noexcept {
  if (row.embedding == nullptr) TESSERA_TRY_STATUS(check_token(row.token, engine_.model.spec.vocab_size));
  const ModelSpec& spec = engine_.model.spec;
  if (row.segment != 0 && row.segment >= spec.n_segments) {
    return make_error(ErrorCode::invalid_argument, "a row of segment {}; the model has {} segments", row.segment, std::max(spec.n_segments, 1u));
  }
  if (!spec.has_logits && (row.output == RowOutput::logits || row.output == RowOutput::token)) {
    return no_logits(spec);
  }
  if (spec.n_scores == 0 && row.output == RowOutput::scores) {
    return make_error(ErrorCode::unsupported, "a row wants scores, and the model ({}) has no head that gives them", spec.architecture);
  }
  if (row.embedding == nullptr && options_.first_layer != 0) {
    return make_error(ErrorCode::invalid_argument, "rows that enter at layer {} must be embeddings", options_.first_layer);
  }
  if (row.output == RowOutput::token) {
    if (part.ahead != 0) return make_error(ErrorCode::internal, "a draft wants a token: its history is not the session's");
    if (row.draw == nullptr || row.draw->sampler == nullptr) {
      return make_error(ErrorCode::invalid_argument, "a row wants a token, and has no sampler to draw it");
    }
    TESSERA_TRY_STATUS(row.draw->sampler->status());
    return row.draw->sampler->check_tokenizer(engine_.tokenizer.fingerprint());
  }
  return {};
}

// Checks that, in a model whose rows see later rows, the part is a whole text that fits into one step.
Status Run::check_whole(const Part& part) const noexcept {
  if (engine_.model.spec.sight != Sight::both_sides) return {};
  if (part.begin != 0 || part.ahead != 0 || !part.session->tokens.empty()) {
    return make_error(ErrorCode::unsupported, "the model ({}) reads a text as a whole: a session gets its tokens in one call", engine_.model.spec.architecture);
  }
  if (part.rows <= engine_.options.step_rows) return {};
  return make_error(ErrorCode::cache_full, "a text of {} tokens; the engine reads at most {} at once: load it with a larger context", part.rows,
                    engine_.options.step_rows);
}

Status Run::check(std::size_t i) const noexcept {
  const Part& part = lists_->parts[i];
  const Session::State& session = *part.session;
  if (session.shared.get() != &engine_) {
    return make_error(ErrorCode::invalid_argument, "a row's session belongs to another engine");
  }
  TESSERA_TRY_STATUS(check_whole(part));
  if (part.rows == 0) return make_error(ErrorCode::invalid_argument, "there are no tokens to append");
  TESSERA_TRY_STATUS(check_pending(i));
  for (const RunRow& row : rows(i)) TESSERA_TRY_STATUS(check_row(part, row));
  TESSERA_TRY_STATUS(check_range(session));
  const std::uint32_t layers = engine_.model.spec.n_layers();
  const auto needs_head = [](const RunRow& row) {
    return row.output == RowOutput::logits || row.output == RowOutput::token || row.output == RowOutput::embedding ||
           row.output == RowOutput::scores;
  };
  if (options_.head == Head::at_the_end && options_.last_layer != layers && std::ranges::any_of(rows(i), needs_head)) {
    return make_error(ErrorCode::invalid_argument, "logits and embeddings need all {} layers; want the hidden state", layers);
  }
  if (counts_attention(session.kv_options.budget) && options_.keep == Keep::rows && !whole_model()) {
    return make_error(ErrorCode::unsupported, "a budget of tokens that are chosen by what rows attend to needs all layers in one engine");
  }
  if (options_.stop.stop_requested() || part.stop.stop_requested()) {
    return make_error(ErrorCode::cancelled, "stopped before the first layer; the session is as it was");
  }
  return {};
}

Status Run::check_range(const Session::State& session) const noexcept {
  const bool same_range = session.first_layer == options_.first_layer && session.last_layer == options_.last_layer;
  const bool within = options_.keep == Keep::nothing && session.first_layer == options_.first_layer &&
                      session.last_layer >= options_.last_layer;
  if (session.last_layer != 0 && !same_range && !within) {
    return make_error(ErrorCode::invalid_state, "this session holds layers {} to {}, not {} to {}; make another for those",
                      session.first_layer, session.last_layer, options_.first_layer, options_.last_layer);
  }
  return {};
}

// Checks that the embeddings among the part's pending tokens were found.
Status Run::check_pending(std::size_t i) const noexcept {
  const Part& part = lists_->parts[i];
  if (part.ahead != 0) return {};
  for (std::size_t row = 0; row < std::min<std::size_t>(part.rows, part.tokens - part.begin); ++row) {
    if (rows(i)[row].token >= 0 || rows(i)[row].embedding != nullptr) continue;
    return make_error(ErrorCode::invalid_state,
                      "position {} has an embedding, which must be computed again, and the session has no function that returns it by its hash: "
                      "truncate the session to at most {} tokens, and append the embedding",
                      part.begin + row, part.begin + row);
  }
  return {};
}

}  // namespace tessera::detail
