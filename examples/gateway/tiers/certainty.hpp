// Measures how certain a model was of its answer, by the log-probabilities in the answer.
#pragma once

#include <optional>

#include <tessera/json/json.hpp>

#include "requests/question.hpp"

namespace gateway {

struct Certainty {
  double mean_logprob = 0;            // mean ln p of the answer's tokens
  std::optional<double> mean_entropy; // mean entropy in nats, from the listed likeliest tokens; nullopt: no tokens are listed
  std::size_t tokens = 0;
};

struct CertaintyLimits {
  double least_logprob = -0.7;         // a mean below: the large model answers
  std::optional<double> most_entropy;  // a mean above: the large model answers
  [[nodiscard]] bool is_met(const Certainty& certainty) const {
    return certainty.mean_logprob >= least_logprob && (!most_entropy || !certainty.mean_entropy || *certainty.mean_entropy <= *most_entropy);
  }
};

// Reads an answer's log-probabilities. nullopt: the answer has none.
[[nodiscard]] std::optional<Certainty> certainty_of(Api api, const tessera::Json& answer);
// Adds to a request's body the fields that ask for log-probabilities.
void ask_for_logprobs(Api api, tessera::Json& body);
// Removes log-probabilities from an answer whose client did not ask for them.
void remove_logprobs(tessera::Json& answer);

}  // namespace gateway
