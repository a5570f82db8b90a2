// The models that run in the gateway itself: an encoder for vectors of questions, and a small model that scores sentences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/engine.hpp>

#include "requests/compressor.hpp"

namespace gateway {

class Embedder {
 public:
  // Loads the model at a path or a name (model_place()). Throws Failure.
  Embedder(const std::string& place, const tessera::EngineOptions& options);
  // Returns a vector of length 1; an empty vector if the text is longer than the model reads, or if the model fails. Any thread may call.
  [[nodiscard]] std::vector<float> vector_of(std::string_view text) const;
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }

 private:
  tessera::Engine engine_;
  std::size_t dimensions_ = 0;
};

class SentenceScorer {
 public:
  SentenceScorer(const std::string& place, const tessera::EngineOptions& options);
  [[nodiscard]] std::optional<std::vector<SentenceScore>> score(const std::vector<std::string_view>& sentences) const;

 private:
  tessera::Engine engine_;
};

}  // namespace gateway
