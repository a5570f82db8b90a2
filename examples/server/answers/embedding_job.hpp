// Computes embeddings, which are vectors of length 1. Each API has its own form of reading the texts and writing the vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apis/api.hpp"

namespace server {

// Returns the most tokens of a text that the model reads.
[[nodiscard]] std::size_t most_tokens_of(const ServedModel& model);

struct EmbeddingWish {
  std::vector<std::vector<tessera::Token>> inputs;  // the texts' tokens: each list has 1 to most_tokens_of() tokens
  tessera::Pooling pooling = tessera::Pooling::automatic;
  std::uint32_t dimensions = 0;  // each vector is cut to this many numbers, and then scaled to length 1; 0: not cut
};

[[nodiscard]] tessera::Json numbers_of(const std::vector<float>& vector);

// Returns the body of the answer. `tokens`: the number of tokens of all texts together.
using VectorsWriter = std::function<std::string(const std::vector<std::vector<float>>& vectors, std::uint64_t tokens)>;

// Answers the call on the workers, a few rows at a time, so that other requests can run in between. Ends early if the client has gone.
// Errors are answered in the form of the path's API.
void start_embedding(const Api& api, const Call& call, EmbeddingWish wish, VectorsWriter writer);

}  // namespace server
