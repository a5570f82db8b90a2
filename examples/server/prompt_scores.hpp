// The log-probabilities of prompts' own tokens, as `echo` with `logprobs` asks for them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tessera/generation.hpp>
#include <tessera/session.hpp>

#include "served_model.hpp"
#include "slices.hpp"

namespace server {

struct PromptScores {
  // Log-probabilities of the tokens but the first, each given those before it: [tokens - 1].
  std::vector<float> logprobs{};
  std::vector<std::vector<tessera::TokenLogprob>> top{};  // the likeliest tokens there, most likely first
};

// Scores prompts a few rows at a time, so that others come in between.
class PromptScoring {
 public:
  PromptScoring(const ServedModel& model, Slices& slices, std::string tenant, std::vector<std::vector<tessera::Token>> prompts, std::size_t top);
  ~PromptScoring();

  // Does a part of the work. True: all of it is done. Throws ApiError.
  bool advance();
  [[nodiscard]] std::vector<PromptScores> take() { return std::move(scores_); }

 private:
  void end_prompt();

  const ServedModel& model_;
  Slices& slices_;
  std::string tenant_;
  std::vector<std::vector<tessera::Token>> prompts_;
  std::size_t top_;
  std::vector<PromptScores> scores_;
  std::size_t prompt_ = 0, token_ = 0;  // where it is
  std::optional<tessera::Session> session_;  // of this prompt
};

}  // namespace server
