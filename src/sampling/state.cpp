#include "sampling/state.hpp"

#include <algorithm>
#include <limits>

#include "support/error.hpp"
#include "support/logit_errors.hpp"

namespace tessera::sampling {
namespace {

using tessera::detail::make_error;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Why softmax() failed after the stages.
Error unusable(const Candidates& candidates) noexcept {
  for (const Candidate& candidate : candidates.view()) {
    if (candidate.logit != candidate.logit) {
      return make_error(ErrorCode::numeric, "a stage of the sampler made the logit of token {} NaN", candidate.token);
    }
  }
  return make_error(ErrorCode::numeric, "the stages of the sampler left no token: every logit is -inf");
}

}  // namespace

Status SamplerState::transform(std::span<const float> logits, std::span<const Token> history, std::uint64_t position) {
  const std::size_t vocabulary = logits.size();
  last_size = 0;
  if (vocabulary == 0 || vocabulary > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    return make_error(ErrorCode::invalid_argument, "{} logits: a sampler needs one for each token of a vocabulary",
                      vocabulary);
  }
  if (counts.size() != vocabulary) {  // the last of them: a resize that threw is tried again
    items.resize(vocabulary);
    spare.resize(vocabulary);
    keys.resize(vocabulary);
    counts.resize(vocabulary);
  }

  std::size_t size = 0;
  for (std::size_t i = 0; i < vocabulary; ++i) {
    const float logit = logits[i];
    if (logit != logit) return tessera::detail::nan_logit_error(i);
    items[size] = {static_cast<Token>(i), logit, 0.0f};
    size += logit == -kInfinity ? 0 : 1;
  }
  if (size == 0) return tessera::detail::no_logit_error();

  Candidates candidates({items, spare, keys, counts}, size);
  Context context{history, position, seed, stream, 0};
  for (const auto& stage : stages) {
    ++context.stage;
    TESSERA_TRY_STATUS(stage->apply(candidates, context));
    if (candidates.empty()) {
      return make_error(ErrorCode::numeric, "stage {} of the sampler ({}) left no token", context.stage, stage->name());
    }
  }
  if (!candidates.softmax()) return unusable(candidates);
  candidates.remove_if([](const Candidate& candidate) { return candidate.probability == 0.0f; });
  for (const Candidate& candidate : candidates.view()) {
    if (static_cast<std::size_t>(static_cast<std::uint32_t>(candidate.token)) >= vocabulary) {
      return make_error(ErrorCode::invalid_argument, "a stage of the sampler made token {}, which does not exist",
                        candidate.token);
    }
  }
  last_size = candidates.size();
  return {};
}

float SamplerState::probability_of(Token token) const noexcept {
  for (std::size_t i = 0; i < last_size; ++i) {
    if (items[i].token == token) return items[i].probability;
  }
  return 0.0f;
}

}  // namespace tessera::sampling
