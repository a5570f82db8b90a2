// A beam search, a step at a time. Whoever drives it (BeamSearch::step() one alone, a scheduler many requests) has its rows
// computed together with others':
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY_STATUS(search.offer(run));
//   run.compute();
//   TESSERA_TRY_STATUS(search.take(run));
//
// After an error of take() the search cannot go on, and none of its beams has a part in the run. A search that begins anew finds
// the same, since nothing is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/decoding/beam_search.hpp>
#include <tessera/sampling/sampler.hpp>

#include "engine/run/draw.hpp"
#include "engine/run/run.hpp"
#include "engine/states.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] BeamSearch::State {
  // Errors: what no search can be made of.
  [[nodiscard]] static Status check(const BeamOptions& options);
  // Tokens of a sequence at most, behind `tokens` of a session. cache_full: there is no room for max_tokens.
  [[nodiscard]] static Result<std::size_t> most_tokens(const BeamOptions& options, std::size_t tokens, std::size_t capacity) noexcept;
  // From a fork of the session that the beams are to follow, which is paged.
  [[nodiscard]] static Result<std::unique_ptr<State>> begin(Session first, const BeamOptions& options);

  // A part of the run for each beam, made ready; none if the logits are known. On error none of them is left.
  Status offer(detail::Run& run);
  [[nodiscard]] std::size_t first_part() const noexcept { return first_part_; }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }
  // What came of them: all beams go on by a token, and those that end are finished.
  Status take(detail::Run& run);
  // All of this, alone.
  Status step();

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  // No further step; what has finished stays.
  void end() noexcept {
    has_ended_ = true;
    running_.clear();
  }
  // Tokens of each running beam.
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  // That all steps have computed.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<const Session*> running() const;
  [[nodiscard]] Result<std::vector<Beam>> results() const;

  // Bytes of pages beside those of `base`, the session that the first beam was forked from.
  struct Pages {
    std::uint64_t held = 0;  // by all beams together
    std::uint64_t next = 0;  // that the next step takes
  };
  [[nodiscard]] Pages pages(const Session& base) const;

 private:
  struct Hypothesis {
    std::vector<Token> tokens;
    double logprob = 0.0;  // of the tokens, added up
    double score = 0.0;    // of a finished one
    FinishReason finish = FinishReason::none;
  };
  struct Running {
    Session session;  // its last token is pending, but for the first one's
    Hypothesis path;
  };
  struct Candidate {
    std::size_t parent;  // of the running beams
    Token token;
    double logprob;      // the parent's and the token's
  };

  Status begin_with(Session first);
  void collect();
  void finish_ended(std::size_t tokens);
  Status follow();
  void look_whether_done(std::size_t tokens) noexcept;
  [[nodiscard]] FinishReason finish_of(Token token, std::size_t tokens) const noexcept;
  [[nodiscard]] double scored(double logprob, std::size_t tokens) const noexcept;

  std::shared_ptr<const Engine::State> shared_;
  BeamOptions options_;
  std::size_t most_ = 0;               // tokens of a sequence
  TextStart text_start_ = TextStart::sequence;
  std::vector<Token> end_tokens_;
  std::size_t length_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Running> running_;       // the likeliest first
  std::vector<Hypothesis> finished_;   // the best first, at most as many as beams
  // Of each running beam: its likeliest continuations, where a draw says log-probabilities. The drawn token is nobody's.
  std::vector<detail::Draw> draws_;    // [beams]
  std::vector<Sampler> samplers_;      // [beams]; one each, so that threads share the draws
  std::size_t first_part_ = 0, parts_ = 0;
  std::vector<Candidate> candidates_;  // of the step, the best first
  bool has_ended_ = false;
};

}  // namespace tessera
