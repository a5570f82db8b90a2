#include "apis/prompt_scores.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <tessera/batch.hpp>

#include "api_error.hpp"

namespace server {

using tessera::Token;
using tessera::TokenLogprob;

namespace {

// Returns the natural logarithm of the sum of exp(logits).
double log_sum(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float each : logits) sum += std::exp(static_cast<double>(each) - most);
  return most + std::log(sum);
}

std::vector<TokenLogprob> likeliest(std::span<const float> logits, double total, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<TokenLogprob> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back({static_cast<Token>(order[i]), static_cast<float>(logits[order[i]] - total)});
  return best;
}

}  // namespace

PromptScoring::PromptScoring(const ServedModel& model, Slices& slices, Caller caller, std::vector<std::vector<Token>> prompts, std::size_t top)
    : model_(model), slices_(slices), caller_(std::move(caller)), prompts_(std::move(prompts)), top_(top), scores_(prompts_.size()) {}
PromptScoring::~PromptScoring() = default;

bool PromptScoring::advance() {
  using tessera::Want;
  if (prompt_ == prompts_.size()) return true;
  const std::vector<Token>& tokens = prompts_[prompt_];
  const std::size_t rows = tokens.empty() ? 0 : tokens.size() - 1;  // without the last token's row, which predicts what follows the prompt
  if (rows == 0) {
    end_prompt();
    return prompt_ == prompts_.size();
  }
  if (!session_) {
    tessera::SessionOptions options;
    options.kv.salt = caller_.tenant;
    options.context = static_cast<std::uint32_t>(tokens.size());
    for (tessera::AdapterUse use : caller_.adapters) {
      // Looks for the adapter's invocation here, in the whole prompt, because the session gets the prompt a few rows at a time.
      if (const auto invocation = use.adapter.invocation(); !invocation.empty()) {
        const auto found = std::find_end(tokens.begin(), tokens.end(), invocation.begin(), invocation.end());
        if (found == tokens.end()) continue;
        use.from = static_cast<std::uint64_t>(found - tokens.begin());
      }
      options.adapters.push_back(std::move(use));
    }
    session_ = value_or_refuse(model_.engine().session(options), "prompt");
  }
  tessera::Batch batch;
  const Slices::Rows left{.position = token_, .wanted = rows - token_, .draws = true};
  const std::size_t n = slices_.next(left);
  for (std::size_t i = token_; i < token_ + n; ++i) value_or_refuse(batch.add(*session_, {.token = tokens[i], .embedding = {}, .want = Want::logits}));
  const tessera::Outputs outputs = slices_.compute(model_.engine(), *session_, batch, left);
  PromptScores& scores = scores_[prompt_];
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const float> logits = outputs.row(i);
    const double total = log_sum(logits);
    scores.logprobs.push_back(static_cast<float>(logits[static_cast<std::size_t>(tokens[token_ + i + 1])] - total));
    scores.top.push_back(likeliest(logits, total, top_));
  }
  token_ += n;
  if (token_ == rows) end_prompt();
  return prompt_ == prompts_.size();
}

void PromptScoring::end_prompt() {
  session_.reset();
  token_ = 0;
  ++prompt_;
}

}  // namespace server
