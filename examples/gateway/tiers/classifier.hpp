// A logistic regression on the vector of a question: the chance that the question is difficult. tools/train/train_difficulty.py trains the
// weights and writes the file.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gateway {

class Classifier {
 public:
  // Reads {"weights": [...], "bias": B, "threshold": T, "embedder": "NAME"}. Throws Failure.
  static Classifier read_file(const std::string& path);
  static Classifier parse(const std::string& text);

  [[nodiscard]] std::size_t dimensions() const noexcept { return weights_.size(); }
  [[nodiscard]] double threshold() const noexcept { return threshold_; }
  // Returns the chance that the question is difficult, 0 to 1. Returns 1 for a vector of another length, so that the large model answers:
  // too much work is better than a bad answer.
  [[nodiscard]] double difficulty(std::span<const float> vector) const;

 private:
  std::vector<double> weights_;
  double bias_ = 0, threshold_ = 0.5;
};

}  // namespace gateway
