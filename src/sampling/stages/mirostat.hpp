// Mirostat 2: a cut that is adjusted after each token, so that the text's surprise stays near a target. Basu et al., "Mirostat: A Neural
// Text Decoding Algorithm that Directly Controls Perplexity" (ICLR 2021); version 2 is the authors' simplification
// (github.com/basusourya/mirostat), as in llama.cpp.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Removes the candidates whose surprise -log2 q is above mu, where q is the candidate's probability. The best candidate always stays. mu
// starts at 2 tau (tau: the target surprise, in bits). After each accepted token, eta * (tau - the token's surprise) is added to mu (eta:
// the learning rate). The token's surprise is computed from the final distribution; if its probability is not known, mu stays. The
// candidates keep their order. Usually the last stage of its chain.
class Mirostat {
 public:
  static constexpr std::string_view kName = "mirostat";

  explicit Mirostat(const MirostatOptions& options) noexcept : options_(options), mu_(2.0f * options.tau) {}

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
  Status accept(Token token, float probability);
  void rollback(std::size_t n) noexcept;

  [[nodiscard]] float mu() const noexcept { return mu_; }

 private:
  MirostatOptions options_;
  float mu_;
  std::vector<float> before_;  // mu before each accepted token; grows by doubling
};

}  // namespace tessera::sampling
