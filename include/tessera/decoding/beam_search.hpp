// Beam search: of all continuations, the most likely ones that a search of this width finds. Nothing is drawn. Sequences
// and scores are those of transformers' generate(num_beams=...) (5.24) on the same model in float32.
//
//   auto beams = tessera::beam_search(session, {.beams = 4, .max_tokens = 64});
//   if (beams) std::puts(beams->front().text.c_str());
//
// Beams are forks of the session: they share the pages of what they have in common, and each has a page for each group
// of layers to itself at most, beside those that it filled alone.
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

// When the search ends, once as many sequences have finished as there are beams (transformers' early_stopping).
enum class EarlyStopping : std::int32_t {
  likely = 0,  // if the best unfinished one, were it to end now, would not be among them (False)
  first = 1,   // at once (True)
  never = 2,   // if no unfinished one can come to be among them any more, whatever follows (never)
};

struct BeamOptions {
  std::uint32_t beams = 4;        // sequences that are followed at once, 1 to 1024
  std::uint32_t results = 0;      // the best ones that come back; 0: as many as beams
  std::size_t max_tokens = 0;     // of a sequence; 0: as many as the context has room for
  // A finished sequence's score is ln p of its tokens, the end token's too, divided by their number to this power:
  // above 0 it favours long sequences, 0 takes the sum, below 0 it favours short ones.
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::likely;
  std::vector<Token> stop_tokens = {};  // these end a sequence
  EndOfGeneration end_of_generation = EndOfGeneration::stop;  // whether the model's own end tokens do
  std::stop_token stop = {};            // looked at before every layer
};

// A finished sequence.
struct Beam {
  std::vector<Token> tokens;  // what follows the session's, the end token too
  std::string text;           // without an end token's
  double score = 0.0;
  double logprob = 0.0;       // ln p of its tokens, added up
  FinishReason finish = FinishReason::none;
};

// The search, a token a step. After an error the session that it began with is as it was, and the search has ended.
class BeamSearch {
 public:
  // The session stays as it is, and may be used meanwhile. cache_full: there is no room for max_tokens.
  [[nodiscard]] static Result<BeamSearch> start(const Session& session, const BeamOptions& options) noexcept;
  BeamSearch() noexcept;  // an empty handle (docs/headers.md)
  BeamSearch(BeamSearch&&) noexcept;
  BeamSearch& operator=(BeamSearch&&) noexcept;
  ~BeamSearch();

  // Another token of each beam. false: the search has ended.
  [[nodiscard]] Result<bool> step() noexcept;
  // Those that have finished, the best first, at most BeamOptions::results.
  [[nodiscard]] Result<std::vector<Beam>> results() const noexcept;
  // The sequences that are followed now, the likeliest first, as sessions: each one's last token is pending.
  [[nodiscard]] std::vector<const Session*> running() const;

  struct State;

 private:
  explicit BeamSearch(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// All steps.
[[nodiscard]] Result<std::vector<Beam>> beam_search(const Session& session, const BeamOptions& options = {}) noexcept;

}  // namespace tessera
