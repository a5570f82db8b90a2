// Texts on their way to vectors of length 1, by the mean over their tokens or by the last. Each API reads the texts and writes
// the vectors in its own words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api.hpp"

namespace server {

enum class Pooling { mean, last };
// As the file says (`pooling_type` of GGUF: 1 mean, 3 last), else the mean.
[[nodiscard]] Pooling pooling_of(const ServedModel& model);

struct EmbeddingWish {
  std::vector<std::vector<tessera::Token>> inputs;  // none is empty, nor longer than the model's context
  Pooling pooling = Pooling::mean;
};

[[nodiscard]] tessera::Json numbers_of(const std::vector<float>& vector);

// Returns the body of the answer. `tokens`: of all texts.
using VectorsWriter = std::function<std::string(const std::vector<std::vector<float>>& vectors, std::uint64_t tokens)>;

// Answers the call on the workers, a few rows at a time, so that others come in between. It ends when the client has gone.
// Errors are answered as the API of the call's path writes them.
void start_embedding(const Api& api, const Call& call, EmbeddingWish wish, VectorsWriter writer);

}  // namespace server
