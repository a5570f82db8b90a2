// A beam search, a step at a time. The caller (BeamSearch::step() for one search, a scheduler for many requests) computes the beams' rows
// in a run, together with the rows of other sequences. The rows of one beam are a part of the run:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY_STATUS(search.offer(run));
//   run.compute();
//   TESSERA_TRY_STATUS(search.take(run));
//
// After an error of take() the search cannot go on, and none of its beams has a part in the run. A new search finds the same
// beams, since nothing is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/decoding/beam_search.hpp>
#include <tessera/sampling/sampler.hpp>

#include "engine/run/draw.hpp"
#include "engine/run/run.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] BeamSearch::State {
  // Checks the options. Error: invalid_argument.
  [[nodiscard]] static Status check(const BeamOptions& options);
  // Returns how many tokens a beam can have after `tokens` tokens of a session. Error: cache_full, no room for max_tokens.
  [[nodiscard]] static Result<std::size_t> most_tokens(const BeamOptions& options, std::size_t tokens, std::size_t capacity) noexcept;
  // Begins a search. `first`: a fork of the session that the beams follow, which must be paged.
  [[nodiscard]] static Result<std::unique_ptr<State>> begin(Session first, const BeamOptions& options);

  // Adds a part of the run for each beam and makes it ready; adds none if the logits are known. After an error no part is left.
  Status offer(detail::Run& run);
  [[nodiscard]] std::size_t first_part() const noexcept { return first_part_; }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }
  // Takes the results of the run: each beam goes on by a token or is finished.
  Status take(detail::Run& run);
  // Does a whole step in a run of its own: offer(), compute, take().
  Status step();

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  // Ends the search. Finished beams stay.
  void end() noexcept {
    has_ended_ = true;
    running_.clear();
  }
  // Returns the number of tokens of each running beam.
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  // Returns the rows that all steps have computed.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<const Session*> running() const;
  [[nodiscard]] Result<std::vector<Beam>> results() const;

  // Bytes of pages that `base`, the session that the first beam was forked from, does not have.
  struct Pages {
    std::uint64_t held = 0;  // bytes that all beams hold together
    std::uint64_t next = 0;  // bytes that the next step takes
  };
  [[nodiscard]] Pages pages(const Session& base) const;

 private:
  struct Hypothesis {
    std::vector<Token> tokens;
    double logprob = 0.0;  // sum over the tokens
    double score = 0.0;    // set when finished
    FinishReason finish = FinishReason::none;
  };
  struct Running {
    Session session;  // its last token is pending. Exception: the first beam before the first step
    Hypothesis path;
  };
  struct Candidate {
    std::size_t parent;  // index into the running beams
    Token token;
    double logprob;      // sum of the parent's and the token's
  };

  Status begin_with(Session first);
  void collect();
  void finish_ended(std::size_t tokens);
  Status follow();
  void look_whether_done(std::size_t tokens) noexcept;
  [[nodiscard]] FinishReason finish_of(Token token, std::size_t tokens) const noexcept;
  [[nodiscard]] double scored(double logprob, std::size_t tokens) const noexcept;

  std::shared_ptr<const Engine::State> shared_;  // the state of engine_
  Engine engine_;
  BeamOptions options_;
  std::size_t most_ = 0;               // the most tokens of a beam
  TextStart text_start_ = TextStart::sequence;
  std::vector<Token> end_tokens_;
  std::size_t length_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Running> running_;       // the likeliest first
  std::vector<Hypothesis> finished_;   // the best first, at most as many as beams
  // Draws, one for each running beam. A draw reports the log-probabilities of the likeliest tokens: the beam's continuations. The token
  // that is drawn is not used.
  std::vector<detail::Draw> draws_;    // [beams]
  std::vector<Sampler> samplers_;      // [beams]; one for each, so that threads can draw at the same time
  std::size_t first_part_ = 0, parts_ = 0;
  std::vector<Candidate> candidates_;  // candidates of the step, the best first
  bool has_ended_ = false;
};

}  // namespace tessera
