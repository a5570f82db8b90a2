// What a Sampler and the Chain that builds it hold.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tessera/sampling/stage.hpp>

namespace tessera::sampling {

struct SamplerState {
  std::vector<std::unique_ptr<Stage>> stages;
  std::optional<Error> error;  // of the first invalid option
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::size_t accepted = 0;

  // Sized to the vocabulary at the first draw: kBytesPerToken for each of its tokens.
  std::vector<Candidate> items;
  std::vector<Candidate> spare;
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> counts;
  static constexpr std::size_t kBytesPerToken = 2 * sizeof(Candidate) + sizeof(std::uint64_t) + sizeof(std::uint32_t);

  std::size_t last_size = 0;  // items that are the last distribution; 0 once a token has been accepted

  // May throw what stages and allocations throw. The candidates are then items.first(last_size).
  Status transform(std::span<const float> logits, std::span<const Token> history, std::uint64_t position);
  [[nodiscard]] float probability_of(Token token) const noexcept;
};

}  // namespace tessera::sampling
