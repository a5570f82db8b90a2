#include "sampling/state.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/logit_errors.hpp"
#include "sampling/loops.hpp"
#include "sampling/token_list.hpp"

namespace tessera::sampling {
namespace {

using tessera::detail::make_error;

// Returns the reason why no probabilities can be computed after the stages: a NaN, or no token is left.
Error unusable(const Candidates& candidates) noexcept {
  for (const Candidate candidate : candidates.view()) {
    if (candidate.logit != candidate.logit) {
      return make_error(ErrorCode::numeric, "a stage of the sampler made the logit of token {} NaN", candidate.token);
    }
  }
  return make_error(ErrorCode::numeric, "the stages of the sampler left no token: every logit is -inf");
}

}  // namespace

void SamplerState::make_room(std::size_t vocabulary) {
  if (counts.size() == vocabulary) return;
  rows_moved = vocabulary;
  tokens.resize(vocabulary);
  values.resize(vocabulary);
  weights.resize(vocabulary);
  keys.resize(vocabulary);
  counts.resize(vocabulary);  // resized last: its size tells that all five lists have the right size
}

// Makes candidates of the logits above -inf, and returns their number.
Result<std::size_t> SamplerState::take_logits(std::span<const float> logits) {
  const std::size_t vocabulary = logits.size();
  if (loops::copy_numbers(logits.data(), values.data(), vocabulary)) {
    for (std::size_t i = 0; i < rows_moved; ++i) tokens[i] = static_cast<Token>(i);
    rows_moved = 0;
    return vocabulary;
  }
  std::size_t size = 0;
  rows_moved = vocabulary;
  for (std::size_t i = 0; i < vocabulary; ++i) {
    const float logit = logits[i];
    if (logit != logit) return tessera::detail::nan_logit_error(i);
    tokens[size] = static_cast<Token>(i);
    values[size] = logit;
    size += logit == -std::numeric_limits<float>::infinity() ? 0 : 1;
  }
  if (size == 0) return tessera::detail::no_logit_error();
  return size;
}

Status SamplerState::transform(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                               std::span<const Token> suppressed) {
  forget();
  if (logits.empty() || logits.size() > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    return make_error(ErrorCode::invalid_argument, "{} logits: a sampler needs one for each token of a vocabulary",
                      logits.size());
  }
  make_room(logits.size());
  TESSERA_TRY(const std::size_t size, take_logits(logits));

  Candidates candidates({tokens, values, weights, keys, counts}, size);
  const std::size_t moved_before = std::exchange(rows_moved, logits.size());  // all, because a stage that fails may have moved any row
  if (!suppressed.empty()) {
    remove_tokens(candidates, suppressed);
    if (candidates.empty()) {
      return make_error(ErrorCode::numeric, "no token can be drawn: all logits above -inf belong to suppressed tokens");
    }
  }
  std::size_t before_answer = 0;
  if (answer_from) {  // counted from the history's end, because a session may have dropped tokens
    const std::uint64_t drawn = position - std::min(position, *answer_from);
    before_answer = history.size() - static_cast<std::size_t>(std::min<std::uint64_t>(drawn, history.size()));
  }
  Context context{history, position, seed, stream, 0, before_answer};
  for (const auto& stage : stages) {
    ++context.stage;
    TESSERA_TRY_STATUS(stage->apply(candidates, context));
    if (candidates.empty()) {
      return make_error(ErrorCode::numeric, "stage {} of the sampler ({}) left no token", context.stage, stage->name());
    }
  }
  if (!candidates.softmax()) return unusable(candidates);
  rows_moved = std::max(moved_before, candidates.rows_moved());
  last = candidates;
  return {};
}

void SamplerState::forget() noexcept {
  if (last) rows_moved = std::max(rows_moved, last->rows_moved());
  last.reset();
}

void SamplerState::list() {
  listing.clear();
  listing.reserve(counts.size());
  for (const Candidate candidate : last->view()) {
    if (candidate.probability > 0.0f) listing.push_back(candidate);
  }
}

float SamplerState::probability_of(Token token) const noexcept {
  if (!last) return 0.0f;
  const auto known = last->tokens();
  const auto at = std::find(known.begin(), known.end(), token);
  return at == known.end() ? 0.0f : last->probability(static_cast<std::size_t>(at - known.begin()));
}

}  // namespace tessera::sampling
