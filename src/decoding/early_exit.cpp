#include "decoding/early_exit.hpp"

#include <algorithm>
#include <chrono>

#include <tessera/extend/decoding/draft_target.hpp>

#include "core/error.hpp"
#include "core/math.hpp"
#include "core/seconds.hpp"
#include "decoding/first_layers.hpp"
#include "engine/run/log_probs.hpp"
#include "engine/session/edit.hpp"
#include "engine/views.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint32_t kMostInRow = 64;

Status check_exit(const EarlyExitOptions& how, const Engine& engine) {
  const ModelSpec& spec = engine.spec();
  if (std::ranges::any_of(spec.layers, &LayerSpec::is_recurrent)) {
    return make_error(ErrorCode::unsupported,
                      "{} has recurrent layers, whose state a token that exits early would change: generate without early exit", spec.architecture);
  }
  TESSERA_TRY_STATUS(DraftTarget::check_layers(engine, how.layers));
  if (how.rule != ExitRule::probability && how.rule != ExitRule::margin) {
    return make_error(ErrorCode::invalid_argument, "a rule of kind {} for early exits; choose probability or margin", static_cast<int>(how.rule));
  }
  if (!(how.confidence > 0.0f && how.confidence <= 1.0f)) {
    return make_error(ErrorCode::invalid_argument, "a confidence of {} for early exits; choose more than 0, at most 1", how.confidence);
  }
  if (how.most_in_row == 0 || how.most_in_row > kMostInRow) {
    return make_error(ErrorCode::invalid_argument, "{} early exits in a row; choose 1 to {}", how.most_in_row, kMostInRow);
  }
  return {};
}

// Returns the value of the rule: the probability of the likeliest token, or its margin to the second likeliest.
Result<double> confidence_of(std::span<const float> logits, ExitRule rule) noexcept {
  TESSERA_TRY(const double log_sum, log_sum_exp(logits));
  const auto first = std::ranges::max_element(logits);
  const double likeliest = math::exp(static_cast<double>(*first) - log_sum);
  if (rule == ExitRule::probability || logits.size() < 2) return likeliest;
  const float before = first == logits.begin() ? *(first + 1) : *std::max_element(logits.begin(), first);
  const float after = first + 1 == logits.end() ? before : *std::max_element(first + 1, logits.end());
  return likeliest - math::exp(static_cast<double>(std::max(before, after)) - log_sum);
}

}  // namespace

Result<std::unique_ptr<EarlyExit>> EarlyExit::make(const GenerateOptions& options, const Session::State& session) {
  const SessionView view = view_of(session);
  TESSERA_TRY_STATUS(check_exit(options.early_exit, view.engine));
  if (options.speculate.drafter != nullptr) {
    return make_error(ErrorCode::invalid_argument,
                      "early exit and a drafter exclude each other: drafts keep the tokens of all layers, early exit does not. Leave one out");
  }
  if (view.stream.window != 0 || view.kv_options.budget.tokens != 0) {
    return make_error(ErrorCode::unsupported,
                      "early exit needs a session that keeps all its tokens: leave the sliding window or the budget of tokens out");
  }
  return std::unique_ptr<EarlyExit>(new EarlyExit(options.early_exit, view.engine.spec().vocab_size));
}

Result<bool> EarlyExit::try_exit(Session::State& session, const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  const Status computed = guess_by_layers(session, options_.layers, 0, -1, logits_, stop);
  if (computed) commit_left(session, view_of(session).kv.length(), Reserved::give_back);  // commits nothing, and drops the try's pages
  seconds_ = seconds_since(begin);
  TESSERA_TRY_STATUS(computed);
  TESSERA_TRY(const double confidence, confidence_of(logits_, options_.rule));
  has_tried_ = true;
  has_exited_ = confidence >= static_cast<double>(options_.confidence);
  return has_exited_;
}

}  // namespace tessera::detail
