// Computes the log-probabilities of a prompt's own tokens, for `echo` with `logprobs`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tessera/generation.hpp>
#include <tessera/session.hpp>

#include "answers/slices.hpp"
#include "fields/answer_fields.hpp"
#include "models/served_model.hpp"

namespace server {

struct PromptScores {
  // ln p of each token except the first, given the tokens before it: [tokens - 1].
  std::vector<float> logprobs{};
  std::vector<std::vector<tessera::TokenLogprob>> top{};  // [tokens - 1]: the likeliest tokens at each place, the most likely first
};

// Scores prompts a few rows at a time, so that other requests can run in between.
class PromptScoring {
 public:
  PromptScoring(const ServedModel& model, Slices& slices, Caller caller, std::vector<std::vector<tessera::Token>> prompts, std::size_t top);
  ~PromptScoring();

  // Computes a few rows. Returns true when all prompts are scored. Throws ApiError.
  bool advance();
  [[nodiscard]] std::vector<PromptScores> take() { return std::move(scores_); }

 private:
  void end_prompt();

  const ServedModel& model_;
  Slices& slices_;
  Caller caller_;
  std::vector<std::vector<tessera::Token>> prompts_;
  std::size_t top_;
  std::vector<PromptScores> scores_;
  std::size_t prompt_ = 0, token_ = 0;  // the next token to compute
  std::optional<tessera::Session> session_;  // session of the present prompt
};

}  // namespace server
