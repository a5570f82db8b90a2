// Logit bias: a number added to the logits of given tokens, as in the OpenAI API.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Adds the biases. Several biases of one token add up. A token that is not in the vocabulary is ignored. Order unchanged.
class LogitBias {
 public:
  static constexpr std::string_view kName = "logit bias";

  [[nodiscard]] static Result<LogitBias> make(std::span<const TokenBias> biases) noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;

 private:
  std::vector<TokenBias> biases_;  // by token, each token once
};

}  // namespace tessera::sampling
