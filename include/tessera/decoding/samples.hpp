// Several answers to one prompt. Each is a fork of the session, which shares the prompt's pages, and all are computed
// together, a step at a time. Sample i is what a fork gives alone whose sampler has the same seed and the stream plus i,
// bit for bit.
//
//   auto samples = tessera::Samples::start(session, sampler, {.samples = 4, .generate = {.max_tokens = 100},
//                                                             .best_by = tessera::BestBy::mean_logprob});
//   while (auto piece = samples->next()) texts[piece->sample] += piece->piece.text;
//   if (auto status = samples->status(); !status) return report(status.error());
//   std::puts(texts[*samples->best()].c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tessera/core/result.hpp>
#include <tessera/generation.hpp>
#include <tessera/sampling/sampler.hpp>
#include <tessera/session.hpp>

namespace tessera {

// What makes a sample the best one, by the model's own log-probabilities (before the sampler) of its tokens, an end
// token's too.
enum class BestBy : std::int32_t {
  nothing = 0,       // none is: log-probabilities are not added up
  mean_logprob = 1,  // a token's on average: long answers and short ones alike
  sum_logprob = 2,   // the whole answer's: it favours short ones
};

struct SamplesOptions {
  std::uint32_t samples = 1;      // 1 to 1024
  GenerateOptions generate = {};  // of each; `stop` ends all of them
  BestBy best_by = BestBy::nothing;
};

// A piece of one of them.
struct SamplePiece {
  std::uint32_t sample = 0;
  Piece piece;
};

class Samples {
 public:
  // The session stays as it is, and may be used meanwhile. (A contiguous one cannot share pages: each sample has a copy.)
  [[nodiscard]] static Result<Samples> start(const Session& session, const Sampler& sampler,
                                             const SamplesOptions& options) noexcept;
  Samples() noexcept;  // an empty handle (docs/headers.md)
  Samples(Samples&&) noexcept;
  Samples& operator=(Samples&&) noexcept;
  ~Samples();

  // Returns the next piece: of a step, those of sample 0 first. nullopt: all have finished, or an error has ended all of them,
  // which status() tells; what was given before it stays.
  [[nodiscard]] std::optional<SamplePiece> next() noexcept;
  // The error that has ended the samples; success while they go on and after they have finished. An error stays.
  [[nodiscard]] Status status() const noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept;
  // none: the sample has not finished. error or cancelled: status() says why.
  [[nodiscard]] FinishReason finish_reason(std::uint32_t sample) const noexcept;
  [[nodiscard]] Figures figures(std::uint32_t sample) const noexcept;
  // ln p of its tokens so far, added up; 0 with BestBy::nothing.
  [[nodiscard]] double logprob(std::uint32_t sample) const noexcept;
  // What BestBy goes by; -infinity before its first token.
  [[nodiscard]] double score(std::uint32_t sample) const noexcept;
  // The sample of the highest score, of equal ones the first; none with BestBy::nothing.
  [[nodiscard]] std::optional<std::uint32_t> best() const noexcept;
  // A sample's session, to go on from, when it has finished. Once.
  [[nodiscard]] std::optional<Session> take_session(std::uint32_t sample) noexcept;

  struct State;

 private:
  explicit Samples(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
