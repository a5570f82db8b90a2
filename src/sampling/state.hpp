// The state of a Sampler, and of the Chain that builds it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

struct [[gnu::visibility("hidden")]] SamplerState {
  std::vector<std::unique_ptr<Stage>> stages;
  std::optional<Error> error;  // error of the first invalid option
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::optional<std::uint64_t> answer_from;  // position of the answer's first token; none: begin_answer() was not called
  std::size_t accepted = 0;
  std::vector<Token> text;  // the accepted tokens; empty if no stage follows a text

  // The workspace, allocated for the whole vocabulary at the first draw: kBytesPerToken for each token.
  std::vector<Token> tokens;
  std::vector<float> values;
  std::vector<float> weights;
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> counts;
  static constexpr std::size_t kBytesPerToken =
      sizeof(Token) + 2 * sizeof(float) + sizeof(std::uint64_t) + sizeof(std::uint32_t);
  std::size_t rows_moved = 0;  // tokens[i] == i for all i from rows_moved on

  std::optional<Candidates> last;  // candidates of the last draw; none once a token has been accepted
  std::vector<Candidate> listing;  // the candidates as rows, for Sampler::distribution()

  // Applies all stages to the logits and puts the candidates into `last`. May throw what stages and allocations throw.
  Status transform(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                   std::span<const Token> suppressed);
  [[nodiscard]] bool follows_text() const noexcept {
    return std::ranges::any_of(stages, [](const auto& stage) { return stage->follows_text(); });
  }
  void forget() noexcept;
  // Fills `listing` from `last`.
  void list();
  [[nodiscard]] float probability_of(Token token) const noexcept;

 private:
  void make_room(std::size_t vocabulary);
  Result<std::size_t> take_logits(std::span<const float> logits);
};

}  // namespace tessera::sampling
