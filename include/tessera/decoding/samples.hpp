// Several answers (samples) to one prompt. Each sample is a fork of the session and shares the prompt's pages; each step computes one token
// of every sample. Sample i has the same bits as a single generation of a fork, drawn with the sampler's seed and with i added to the
// sampler's stream number.
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

// Says how the best sample is chosen: by the natural logarithms of the probabilities that the model itself (before the sampler's stages)
// gave to the sample's tokens. An end token counts too.
enum class BestBy : std::int32_t {
  nothing = 0,       // no best sample; log-probabilities are not added up
  mean_logprob = 1,  // the mean over the tokens: fair to long and short answers
  sum_logprob = 2,   // the sum over the tokens: favours short answers
};

struct SamplesOptions {
  std::uint32_t samples = 1;      // number of samples, 1 to 1024
  GenerateOptions generate = {};  // options of each sample; `stop` ends all samples
  BestBy best_by = BestBy::nothing;
};

// A piece of one sample.
struct SamplePiece {
  std::uint32_t sample = 0;
  Piece piece;
};

class Samples {
 public:
  // Begins the samples. The session stays as it is and may be used meanwhile. If the session is contiguous, it cannot share pages, so each
  // sample gets a copy of its keys and values.
  [[nodiscard]] static Result<Samples> start(const Session& session, const Sampler& sampler,
                                             const SamplesOptions& options) noexcept;
  Samples() noexcept;  // an empty handle (docs/headers.md)
  Samples(Samples&&) noexcept;
  Samples& operator=(Samples&&) noexcept;
  ~Samples();

  // Returns the next piece of any sample. The samples advance together; within a step the piece of sample 0 comes first. nullopt: all
  // samples have finished, or an error has ended all samples (status() returns the error). Pieces that were returned before the error stay
  // valid.
  [[nodiscard]] std::optional<SamplePiece> next() noexcept;
  // Returns the error that has ended the samples; success while they go on and after they have finished. Later calls return the same error.
  [[nodiscard]] Status status() const noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept;
  // Returns how the sample has finished. FinishReason::none: it goes on. error or cancelled: status() says why.
  [[nodiscard]] FinishReason finish_reason(std::uint32_t sample) const noexcept;
  [[nodiscard]] Figures figures(std::uint32_t sample) const noexcept;
  // Returns the sum of ln p of the sample's tokens so far; 0 with BestBy::nothing.
  [[nodiscard]] double logprob(std::uint32_t sample) const noexcept;
  // Returns the number by which `best_by` compares the samples; -infinity before the sample's first token.
  [[nodiscard]] double score(std::uint32_t sample) const noexcept;
  // Returns the sample with the highest score, the first of equals; nullopt with BestBy::nothing.
  [[nodiscard]] std::optional<std::uint32_t> best() const noexcept;
  // Returns the session of a finished sample, so that the caller can go on with it. A second call for the same sample returns nullopt.
  [[nodiscard]] std::optional<Session> take_session(std::uint32_t sample) noexcept;

  struct State;

 private:
  explicit Samples(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
