// Measures how far a run's predictions are from a reference's. Computes in double, in the order of the rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>

namespace tessera::quality {

class Divergence {
 public:
  // Adds one row to the comparison. `reference` and `run`: the row's logits [vocab] in the reference and in the run that is compared.
  // `next`: the text's next token. If a logit is not finite, returns false and adds nothing.
  [[nodiscard]] bool add(std::span<const float> reference, std::span<const float> run, Token next);

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] double mean_kl() const;  // mean of KL(reference || run), in nats a token
  [[nodiscard]] double max_kl() const { return max_kl_; }
  [[nodiscard]] double reference_perplexity() const;
  [[nodiscard]] double perplexity() const;
  [[nodiscard]] double same_first_choice() const;  // share of rows

 private:
  std::uint64_t rows_ = 0, agreeing_ = 0;
  double kl_ = 0.0, max_kl_ = 0.0, reference_loss_ = 0.0, loss_ = 0.0;
  std::vector<double> p_, q_;  // logarithms of the probabilities of a row
};

}  // namespace tessera::quality
