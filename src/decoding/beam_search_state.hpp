// A beam search that is driven step by step. The caller (BeamSearch::step() for one search, a scheduler for many requests) computes the
// beams' rows in a run, together with rows of other sequences. The rows of one beam are a part of the run:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY_STATUS(search.offer(run));
//   run.compute();
//   TESSERA_TRY_STATUS(search.take(run));
//
// Steps are driven as in a Decoding (drive.hpp). But a beam search is not a Decoding: a step extends all beams by one token each, forks and
// drops their sessions, and returns no piece before the search ends. A beam search has no sampler, no drafts, no stop strings and no prompt
// of its own.
//
// After an error of take() the search cannot go on, and its beams have no parts in the run. A new search would find the same beams, because
// a beam search draws no random numbers.
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
  // Returns the limit of tokens of a beam whose session has `tokens` tokens. Error: cache_full, the
  // context is too small for max_tokens more tokens.
  [[nodiscard]] static Result<std::size_t> most_tokens(const BeamOptions& options, std::size_t tokens, std::size_t capacity) noexcept;
  // Begins a search. `first` is the first beam: a fork of the session whose text the beams continue. Precondition: its cache is paged.
  [[nodiscard]] static Result<std::unique_ptr<State>> begin(Session first, const BeamOptions& options);

  // Adds a part for each beam to the run, and reserves its pages. Adds no part if the logits are already known, or after an error.
  Status offer(detail::Run& run);
  [[nodiscard]] std::size_t first_part() const noexcept { return first_part_; }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }
  // Reads the results of the run. Each beam gets one more token, or is finished.
  Status take(detail::Run& run);
  // Computes a whole step in a run of its own: offer(), compute(), take().
  Status step();

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  // Ends the search. Finished sequences are kept.
  void end() noexcept {
    has_ended_ = true;
    running_.clear();
  }
  // Returns the number of tokens of each running beam.
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  // Returns the number of rows that all steps have computed.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<const Session*> running() const;
  [[nodiscard]] Result<std::vector<Beam>> results() const;

  // Memory of the beams, without pages of `base` (the session from which the first beam was forked).
  struct Pages {
    std::uint64_t held = 0;  // bytes of all beams' pages; shared pages count once
    std::uint64_t next = 0;  // limit of the bytes of pages that the next step needs
  };
  [[nodiscard]] Pages pages(const Session& base) const;

 private:
  struct Hypothesis {
    std::vector<Token> tokens;
    double logprob = 0.0;  // sum of the log-probabilities of its tokens
    double score = 0.0;    // set only when the sequence is finished
    FinishReason finish = FinishReason::none;
  };
  struct Running {
    Session session;  // its last token is pending, except in the first beam before the first step
    Hypothesis path;
  };
  struct Candidate {
    std::size_t parent;  // index into the running beams
    Token token;
    double logprob;      // the parent's sum of log-probabilities plus the log-probability of the token
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
  std::size_t most_ = 0;               // limit of the tokens of a beam
  TextStart text_start_ = TextStart::sequence;
  std::vector<Token> end_tokens_;
  std::size_t length_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Running> running_;       // the running beams, likeliest first
  std::vector<Hypothesis> finished_;   // finished sequences, best first; at most `beams`
  // One draw for each running beam. The search uses the log-probabilities that the draw reports (the beam's likeliest continuations), and
  // ignores the drawn token.
  std::vector<detail::Draw> draws_;    // [beams]
  std::vector<Sampler> samplers_;      // [beams]; one for each beam, so that threads can draw at the same time
  std::size_t first_part_ = 0, parts_ = 0;
  std::vector<Candidate> candidates_;  // the step's continuations, best first
  bool has_ended_ = false;
};

}  // namespace tessera
