#include "tiers/classifier.hpp"

#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include <tessera/json/json.hpp>

#include "failure.hpp"
#include "requests/values.hpp"
#include "system/program.hpp"

namespace gateway {

Classifier Classifier::read_file(const std::string& path) {
  std::ifstream file(tessera::tool::path_of(path), std::ios::binary);
  if (!file) throw Failure(tessera::ErrorCode::not_found, fmt::format("cannot read {}", path));
  try {
    return parse({std::istreambuf_iterator<char>(file), {}});
  } catch (const Failure& failure) {
    throw Failure(failure.code, fmt::format("{}: {}", path, failure.what()));
  }
}

Classifier Classifier::parse(const std::string& text) {
  const tessera::Json json = value(tessera::Json::parse(text));
  const auto wrong = [](const std::string& why) { return Failure(tessera::ErrorCode::invalid_argument, why); };
  const tessera::Json* weights = json.find("weights");
  if (weights == nullptr || weights->elements() == nullptr || weights->elements()->empty()) throw wrong("weights must be a list of numbers");
  Classifier classifier;
  for (const tessera::Json& each : *weights->elements()) {
    const auto weight = number_of(&each);
    if (!weight || !std::isfinite(*weight)) throw wrong("weights must be a list of numbers");
    classifier.weights_.push_back(*weight);
  }
  classifier.bias_ = number_at(json, "bias").value_or(0);
  classifier.threshold_ = number_at(json, "threshold").value_or(0.5);
  if (!(classifier.threshold_ >= 0 && classifier.threshold_ <= 1) || !std::isfinite(classifier.bias_)) throw wrong("bias must be a number, and threshold one from 0 to 1");
  return classifier;
}

double Classifier::difficulty(std::span<const float> vector) const {
  if (vector.size() != weights_.size()) return 1;
  double sum = bias_;
  for (std::size_t i = 0; i < vector.size(); ++i) sum += weights_[i] * static_cast<double>(vector[i]);
  return 1 / (1 + std::exp(-sum));
}

}  // namespace gateway
