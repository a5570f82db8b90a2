#include "cost_model.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tessera::cost {
namespace {

constexpr double kSecondsOfHour = 3600, kMillion = 1e6;

Error wrong(const std::string& where, std::string_view why) { return {ErrorCode::invalid_argument, why, where}; }

bool is_share(double x) { return x >= 0 && x <= 1; }
bool is_price(double x) { return std::isfinite(x) && x >= 0; }

double thousand_of(const Tier& tier, double prompt, double answer) {
  return (tier.prompt_million * prompt + tier.answer_million * answer) * 1000 / kMillion;
}

Status check(const Tier& tier) {
  if (!is_price(tier.prompt_million) || !is_price(tier.answer_million)) return wrong(tier.name, "a price is negative or not a number");
  if (!is_share(tier.share) || !is_share(tier.again)) return wrong(tier.name, "a share is not from 0 to 1 (0 to 100 percent)");
  return {};
}

Status check(const Mix& mix) {
  const double prompt = mix.size.prompt, answer = mix.size.answer;
  if (!is_price(prompt) || !is_price(answer) || prompt + answer <= 0) return wrong("request", "a request needs tokens: state a prompt and an answer of 0 or more");
  if (Status status = check(mix.baseline); !status) return status;
  double sum = 0;
  for (const Tier& tier : mix.tiers) {
    if (Status status = check(tier); !status) return status;
    sum += tier.share;
  }
  if (!mix.tiers.empty() && std::abs(sum - 1) > 1e-6) {
    return wrong("tiers", fmt::format("the tiers' shares add up to {:.4g} percent, not to 100", 100 * sum));
  }
  for (const Saving& saving : mix.savings) {
    if (!is_share(saving.share)) return wrong(saving.name, "a share is not from 0 to 1 (0 to 100 percent)");
  }
  if (!is_share(mix.sampled)) return wrong("sampled", "the share is not from 0 to 1 (0 to 100 percent)");
  if (!is_price(mix.lookup)) return wrong("lookup", "the price is negative or not a number");
  return {};
}

// How much work is left for models after the savings of a mix (a cache, for example) that were counted so far.
struct Left {
  double requests = 1;  // share of the requests
  double prompt = 1;    // share of a request's prompt
};

double tiers_thousand(const Mix& mix, const Left& left) {
  const double prompt = mix.size.prompt * left.prompt;
  const double again = thousand_of(mix.baseline, prompt, mix.size.answer);
  if (mix.tiers.empty()) return left.requests * again;
  double sum = 0;
  for (const Tier& tier : mix.tiers) sum += tier.share * (thousand_of(tier, prompt, mix.size.answer) + tier.again * again);
  return left.requests * sum;
}

}  // namespace

Result<ModelCost> cost_of(const Model& model) noexcept {
  ModelCost cost;
  double speedup = 1;
  if (model.speculation) {
    auto estimate = estimate_speculation(*model.speculation);
    if (!estimate) return wrong(model.name, estimate.error().text());
    speedup = estimate->speedup;
    cost.speculation = *estimate;
  }
  if (model.prompt_price || model.answer_price) {
    if (model.speculation) return wrong(model.name, "speculation changes the speed of a machine: state a machine and rates, not prices of tokens");
    cost.prompt_million = model.prompt_price.value_or(model.answer_price.value_or(0));
    cost.answer_million = model.answer_price.value_or(cost.prompt_million);
    if (!is_price(cost.prompt_million) || !is_price(cost.answer_million)) return wrong(model.name, "a price is negative or not a number");
    return cost;
  }
  const Machine& machine = model.machine;
  if (!is_price(machine.hour)) return wrong(model.name, "the price of an hour is negative or not a number");
  if (!(model.answer_rate > 0) || !std::isfinite(model.answer_rate)) return wrong(model.name, "state the tokens a second of answers, above 0");
  if (model.prompt_rate < 0 || !std::isfinite(model.prompt_rate)) return wrong(model.name, "the tokens a second of prompts are negative or not a number");
  if (!(model.busy > 0) || model.busy > 1) return wrong(model.name, "the busy share is not above 0 and at most 1 (100 percent)");
  if (machine.memory > 0 && model.memory > 0) cost.machines = (model.memory - 1) / machine.memory + 1;
  const double hour = machine.hour * static_cast<double>(cost.machines) / (kSecondsOfHour * model.busy) * kMillion;
  cost.answer_million = hour / (model.answer_rate * speedup);
  cost.prompt_million = model.prompt_rate > 0 ? hour / model.prompt_rate : cost.answer_million;
  return cost;
}

Result<MixCost> cost_of(const Mix& mix) noexcept {
  if (const Status status = check(mix); !status) return status.error();
  MixCost cost;
  Left left;
  cost.baseline_thousand = thousand_of(mix.baseline, mix.size.prompt, mix.size.answer);
  const auto step = [&](const std::string& name, double thousand) {
    cost.thousand = thousand;
    cost.saved = cost.baseline_thousand > 0 ? 1 - thousand / cost.baseline_thousand : 0;
    cost.steps.push_back({name, cost.thousand, cost.saved});
  };
  if (!mix.tiers.empty()) step("tiers", tiers_thousand(mix, left));
  for (const Saving& saving : mix.savings) {
    (saving.of == Saving::Of::prompt ? left.prompt : left.requests) *= 1 - saving.share;
    step(saving.name, tiers_thousand(mix, left));
  }
  const double computed = tiers_thousand(mix, left);
  if (mix.lookup > 0) step("work in front", computed + mix.lookup);
  if (mix.sampled > 0) step("answers compared", computed + mix.lookup + mix.sampled * cost.baseline_thousand);
  if (cost.steps.empty()) step(mix.baseline.name, computed);
  cost.million = cost.thousand * 1000 / (mix.size.prompt + mix.size.answer);
  return cost;
}

}  // namespace tessera::cost
