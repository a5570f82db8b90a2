// The arithmetic of tessera-cost. Computes the price of tokens and requests from prices of machines and speeds of models. Reads no files.
//
//   Price of a million tokens = price of an hour / (tokens a second * 3600 * share of the hour in use) * 1e6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/unstable/decoding/speculation_estimate.hpp>

namespace tessera::cost {

// A machine that is paid by the hour.
struct Machine {
  std::string name = {};
  double hour = 0;            // price of an hour
  std::uint64_t memory = 0;   // bytes for weights, keys and values; 0: not stated
};

// A model on a machine, or behind a service that is paid by the token.
struct Model {
  std::string name = {};
  Machine machine = {};          // paid by the hour; not used if prompt_price and answer_price are stated
  double prompt_rate = 0;     // tokens of prompts a second, all requests together; 0: the same as answer_rate
  double answer_rate = 0;     // tokens of answers a second, all requests together
  double busy = 1;            // share of the paid time in which the model computes at these rates, 0 to 1
  std::uint64_t memory = 0;   // bytes of weights, keys and values; 0: not stated
  std::optional<SpeculationCosts> speculation = {};  // multiplies answer_rate by its speedup
  std::optional<double> prompt_price = {}, answer_price = {};  // prices of a million tokens
};

// The price of a model's tokens.
struct ModelCost {
  std::uint64_t machines = 1;    // number of machines that the model's memory needs; the rates are those of all machines together
  double prompt_million = 0;     // price of a million tokens of prompts
  double answer_million = 0;     // price of a million tokens of answers
  std::optional<SpeculationEstimate> speculation = {};
};

// Returns the price of a model's tokens. Error: invalid_argument if a rate, price or share is negative, not finite or missing. Also returns
// the errors of estimate_speculation().
[[nodiscard]] Result<ModelCost> cost_of(const Model& model) noexcept;

// The tokens of an average request.
struct RequestSize {
  double prompt = 1000;
  double answer = 300;
};

// A share of the requests that one model answers.
struct Tier {
  std::string name = {};
  double prompt_million = 0, answer_million = 0;  // prices of this model's tokens
  double share = 0;                               // share of the requests, 0 to 1
  double again = 0;                               // share of the tier's requests that the baseline answers too (uncertain answers)
};

// A way to compute less. Applies to the requests and tokens that the savings before it left.
struct Saving {
  enum class Of : std::int32_t { all = 0, prompt = 1 };
  std::string name = {};
  double share = 0;       // saved share of the requests (Of::all) or of the prompts' tokens (Of::prompt), 0 to 1
  Of of = Of::all;
};

struct Mix {
  RequestSize size = {};
  Tier baseline = {};         // the model that would answer everything; it also answers a tier's uncertain requests again
  std::vector<Tier> tiers = {};   // empty: only the baseline
  std::vector<Saving> savings = {};
  double sampled = 0;         // share of the requests that the baseline computes once more, to compare answers
  double lookup = 0;          // price of a thousand requests' embeddings and other work in front of the models
  double requests_a_day = 0;  // for reports; 0: not stated
};

struct CostStep {
  std::string name = {};
  double thousand = 0;   // price of a thousand requests after this step
  double saved = 0;      // saved share of the baseline's price so far, at most 1; negative if the mix costs more than the baseline
};

struct MixCost {
  double baseline_thousand = 0;  // price of a thousand requests, all of them answered by the baseline
  double thousand = 0;           // price of a thousand requests of the mix
  double million = 0;            // price of a million tokens, prompts and answers together
  double saved = 0;              // saved share of the baseline's price
  std::vector<CostStep> steps;       // the tiers, then each saving in turn, then the embeddings of `lookup`, then the comparisons
};

// Returns the price of a mix (requests that are divided among tiers and caches). Error: invalid_argument if a share is outside of [0, 1],
// if the shares of the tiers do not add up to 1, if a price is negative or not finite, or if a request has no tokens.
[[nodiscard]] Result<MixCost> cost_of(const Mix& mix) noexcept;

}  // namespace tessera::cost
