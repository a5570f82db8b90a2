// What a Sampler and the Chain that builds it hold.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

struct [[gnu::visibility("hidden")]] SamplerState {
  std::vector<std::unique_ptr<Stage>> stages;
  std::optional<Error> error;  // of the first invalid option
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::optional<std::uint64_t> answer_from;  // the position of the answer's first token; none: nobody said
  std::size_t accepted = 0;
  std::vector<Token> text;  // those tokens, if a stage follows a text; else none

  // Sized to the vocabulary at the first draw: kBytesPerToken for each of its tokens.
  std::vector<Token> tokens;
  std::vector<float> values;
  std::vector<float> weights;
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> counts;
  static constexpr std::size_t kBytesPerToken =
      sizeof(Token) + 2 * sizeof(float) + sizeof(std::uint64_t) + sizeof(std::uint32_t);
  std::size_t rows_moved = 0;  // tokens from which on tokens[i] == i

  std::optional<Candidates> last;  // what the last draw was made from; none once a token has been accepted
  std::vector<Candidate> listing;  // as rows, for who asks for the distribution

  // May throw what stages and allocations throw. The candidates are then `last`.
  Status transform(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                   std::span<const Token> suppressed);
  [[nodiscard]] bool follows_text() const noexcept {
    return std::ranges::any_of(stages, [](const auto& stage) { return stage->follows_text(); });
  }
  void forget() noexcept;
  // Fills the listing from `last`.
  void list();
  [[nodiscard]] float probability_of(Token token) const noexcept;

 private:
  void make_room(std::size_t vocabulary);
  Result<std::size_t> take_logits(std::span<const float> logits);
};

}  // namespace tessera::sampling
