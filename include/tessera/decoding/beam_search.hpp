// Beam search: finds likely continuations by following several sequences at once. Nothing is drawn at random. Sequences and scores
// are the same as those of transformers' generate(num_beams=...) (5.24) on the same model in float32.
//
//   auto beams = tessera::beam_search(session, {.beams = 4, .max_tokens = 64});
//   if (beams) std::puts(beams->front().text.c_str());
//
// Beams are forks of the session, so beams that begin with the same tokens share the KV pages that these tokens fill. A beam needs pages of
// its own only for tokens that no other beam has, and at most one further page of each group of layers (layers with the same window).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/generation.hpp>
#include <tessera/session.hpp>

namespace tessera {

// Says when the search ends, after as many sequences have finished as there are beams. In parentheses: the value of early_stopping in
// transformers.
enum class EarlyStopping : std::int32_t {
  likely = 0,  // when the best unfinished beam, if ended now, would not enter the result (False)
  first = 1,   // at once (True)
  never = 2,   // when no unfinished beam can still enter the result, whatever follows ("never")
};

struct BeamOptions {
  std::uint32_t beams = 4;        // sequences that are followed at once, 1 to 1024
  std::uint32_t results = 0;      // sequences that are returned, the best first; at most `beams`; 0: `beams`
  std::size_t max_tokens = 0;     // most tokens that are added to a sequence; 0: until the context is full
  // Exponent of the length in the score of a finished sequence: (sum of ln p of its tokens, end token included) / (number of
  // tokens)^length_penalty. Above 0: long sequences are favoured. 0: the score is the plain sum. Below 0: short sequences are favoured.
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::likely;
  std::vector<Token> stop_tokens = {};  // tokens that end a sequence
  EndOfGeneration end_of_generation = EndOfGeneration::stop;  // stop: the model's own end tokens end a sequence too
  std::stop_token stop = {};            // checked before every layer
};

// A finished sequence.
struct Beam {
  std::vector<Token> tokens;  // tokens after the session's tokens, end token included
  std::string text;           // text of `tokens` without the end token
  double score = 0.0;
  double logprob = 0.0;       // the sum of ln p of `tokens`
  FinishReason finish = FinishReason::none;
};

// A beam search that adds one token to each beam in each step. If step() returns an error, the search has ended. The session with which the
// search began never changes.
class BeamSearch {
 public:
  // Begins a search. The session stays as it is and may be used meanwhile. Errors: cache_full, no room for max_tokens.
  [[nodiscard]] static Result<BeamSearch> start(const Session& session, const BeamOptions& options) noexcept;
  BeamSearch() noexcept;  // an empty handle (docs/headers.md)
  BeamSearch(BeamSearch&&) noexcept;
  BeamSearch& operator=(BeamSearch&&) noexcept;
  ~BeamSearch();

  // Computes another token of each beam. Returns false when the search has ended.
  [[nodiscard]] Result<bool> step() noexcept;
  // Returns the finished sequences so far, the best first, at most BeamOptions::results of them.
  [[nodiscard]] Result<std::vector<Beam>> results() const noexcept;
  // Returns the sequences that are followed now, the likeliest first, as sessions whose last token is pending.
  [[nodiscard]] std::vector<const Session*> running() const;

  struct State;

 private:
  explicit BeamSearch(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Runs a whole search.
[[nodiscard]] Result<std::vector<Beam>> beam_search(const Session& session, const BeamOptions& options = {}) noexcept;

}  // namespace tessera
