#include "sampler.hpp"

#include <random>
#include <utility>

#include "failure.hpp"

bool draws(const Options& options) { return !options.greedy && options.temperature != 0.0f; }

tessera::Sampler make_sampler(const Options& options, std::uint64_t seed, std::optional<tessera::Matcher> matcher,
                              std::optional<tessera::ReasoningBudget> budget) {
  auto chain = tessera::sampling::chain();
  chain.seed(seed);
  if (matcher) chain.stage(tessera::sampling::GrammarStage{*std::move(matcher)});
  if (budget) chain.stage(*std::move(budget));
  if (options.repeat_penalty != 1.0f) {
    using tessera::sampling::Counted;
    chain.penalties({.repetition = options.repeat_penalty,
                     .last_n = options.repeat_last.value_or(tessera::sampling::kWholeHistory),
                     .counted = options.penalizes_prompt ? Counted::sequence : Counted::answer});
  }
  if (options.greedy) {
    chain.greedy();
  } else {
    chain.temperature(options.temperature).top_k(options.top_k).top_p(options.top_p);
    if (options.min_p != 0.0f) chain.min_p(options.min_p);  // left out at 0, because a GPU cannot draw with this stage
  }
  tessera::Sampler sampler = chain.build();
  if (const auto status = sampler.status(); !status) throw UsageError(status.error().text());
  return sampler;
}

std::uint64_t fresh_seed() { return std::random_device()(); }
