#include "tiers/certainty.hpp"

#include <algorithm>
#include <cmath>

#include "requests/values.hpp"

namespace gateway {

using tessera::Json;

namespace {

constexpr int kTop = 5;  // how many likeliest tokens a request asks for at each place
constexpr double kLeast = -100;  // lower log-probabilities count as this: an impossible token may have -inf or -9999

// Returns the entropy of a token's distribution, in nats. Only the likeliest tokens are listed; the probability that they leave counts as
// one more token.
template <class Each>
double entropy_of(const Each& each_logprob) {
  double entropy = 0, left = 1;
  each_logprob([&](double logprob) {
    const double p = std::exp(std::max(logprob, kLeast));
    entropy -= p * std::max(logprob, kLeast);
    left -= p;
  });
  return left > 1e-9 ? entropy - left * std::log(left) : entropy;
}

std::optional<Certainty> chat_certainty(const Json& logprobs) {
  const Json* content = logprobs.find("content");
  if (content == nullptr || content->elements() == nullptr || content->elements()->empty()) return std::nullopt;
  Certainty sum;
  double entropy = 0;
  std::size_t with_top = 0;
  for (const Json& token : *content->elements()) {
    const auto logprob = number_at(token, "logprob");
    if (!logprob) return std::nullopt;
    sum.mean_logprob += std::max(*logprob, kLeast);
    ++sum.tokens;
    const Json* top = token.find("top_logprobs");
    if (top == nullptr || top->elements() == nullptr || top->elements()->empty()) continue;
    ++with_top;
    entropy += entropy_of([&](auto&& take) {
      for (const Json& one : *top->elements()) take(number_at(one, "logprob").value_or(kLeast));
    });
  }
  sum.mean_logprob /= static_cast<double>(sum.tokens);
  if (with_top > 0) sum.mean_entropy = entropy / static_cast<double>(with_top);
  return sum;
}

std::optional<Certainty> text_certainty(const Json& logprobs) {
  const Json* list = logprobs.find("token_logprobs");
  if (list == nullptr || list->elements() == nullptr) return std::nullopt;
  Certainty sum;
  for (const Json& one : *list->elements()) {
    const auto logprob = number_of(&one);
    if (!logprob) continue;  // the first token of an echoed prompt
    sum.mean_logprob += std::max(*logprob, kLeast);
    ++sum.tokens;
  }
  if (sum.tokens == 0) return std::nullopt;
  sum.mean_logprob /= static_cast<double>(sum.tokens);
  return sum;
}

}  // namespace

std::optional<Certainty> certainty_of(Api api, const Json& answer) {
  const Json* choice = first_choice(answer);
  const Json* logprobs = choice != nullptr ? choice->find("logprobs") : nullptr;
  if (logprobs == nullptr) return std::nullopt;
  return api == Api::chat ? chat_certainty(*logprobs) : text_certainty(*logprobs);
}

void ask_for_logprobs(Api api, Json& body) {
  if (api == Api::chat) {
    body.set("logprobs", true);
    if (number_at(body, "top_logprobs").value_or(0) < kTop) body.set("top_logprobs", kTop);
  } else if (!has(body, "logprobs")) {
    body.set("logprobs", 1);
  }
}

void remove_logprobs(Json& answer) {
  Json* choices = nullptr;
  if (answer.members() == nullptr) return;
  for (auto& [key, value] : *answer.members()) {
    if (key == "choices") choices = &value;
  }
  if (choices == nullptr || choices->elements() == nullptr) return;
  for (Json& choice : *choices->elements()) {
    if (choice.find("logprobs") != nullptr) choice.set("logprobs", Json());
  }
}

}  // namespace gateway
