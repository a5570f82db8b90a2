// Generated text, piece by piece, as Session::generate() returns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/text/marked_text.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

class Drafter;
class Session;
class Sampler;

enum class FinishReason : std::int32_t {
  none = 0,               // not finished, or left early
  max_tokens = 1,
  end_of_generation = 2,  // the model's own end token
  stop_token = 3,
  stop_string = 4,
  callback = 5,           // the callback returned false
  error = 6,
  cancelled = 7,          // a stop was requested; the last element is an error of code cancelled
};

[[nodiscard]] std::string_view to_string(FinishReason reason) noexcept;

enum class EndOfGeneration : std::int32_t { stop = 0, ignore = 1 };

enum class DraftLength : std::int32_t {
  by_goodput = 0,  // the number of drafts with the most tokens a second, by measured times; 0 if drafts do not pay
  longest = 1,     // always max_drafts
};

// Speculation: tokens that a drafter proposes (extend/decoding/drafter.hpp) are computed in one step with the token before them, and
// each draft is kept if the sampler draws the same token there. Only the time changes: tokens, log-probabilities, text, keys and
// values are the same bits as without speculation. (Exception: a backend whose bits depend on the batch; Numerics::invariant forbids this.)
// Needs memory for the logits of max_drafts rows.
struct SpeculateOptions {
  std::shared_ptr<const Drafter> drafter = {};  // none: no speculation
  std::uint32_t max_drafts = 8;                 // drafts in a step at most, 1 to 64
  DraftLength length = DraftLength::by_goodput;
  // The largest number of chains in a tree of drafts, 1 to 16, for drafters that make trees. Chains branch off where several tokens may
  // follow, and the longest chain of accepted drafts is kept. During a step, each chain except the first takes a page of each group of
  // layers (layers with the same window). Drafts do not branch if no page is free, or if pages cannot be forked (contiguous sessions,
  // recurrent layers, a loaded MTP head, a token budget).
  std::uint32_t branches = 1;
};

// Stretches of the text in which stop strings are not looked for.
struct StopFree {
  std::vector<MarkedText> stretches{};  // stop strings are not looked for in the markers of a stretch either
  bool starts_inside = false;           // the text begins within the first of the stretches
};

struct GenerateOptions {
  std::size_t max_tokens = 0;                 // most tokens to draw; 0: no limit, and a full context is an error
  std::vector<Token> stop_tokens = {};        // tokens that end the text; the token is delivered, without text
  std::vector<std::string> stop_strings = {}; // texts that end the generation, also across tokens; the text is cut before the match
  EndOfGeneration end_of_generation = EndOfGeneration::stop;
  // show: the names of control tokens appear in the text, as OutputParser reads them. Exception: the token that ends the text does not
  // appear.
  ControlText control_text = ControlText::omit;
  // With ControlText::show, the control tokens that appear in the text; nullopt: all. An answer of a conversation shows only the tokens of
  // its output format's markers (marker_tokens()), so that its content has no other control tokens.
  std::optional<std::vector<Token>> shown_control = {};
  // Stretches of the text in which stop strings have no effect; nullopt: none. In an answer of a conversation, nullopt means the reasoning
  // of its output format; with an empty StopFree, stop strings end the reasoning too.
  std::optional<StopFree> stop_free = {};
  std::uint32_t logprobs = 0;                 // most likely tokens to report with each piece; 0: none
  std::stop_token stop = {};                  // checked before every layer
  SpeculateOptions speculate = {};
};

struct TokenLogprob {
  Token token;
  float logprob;  // natural logarithm, of the model's own distribution (before the sampler)
};

// One token, and the text that became certain with the token: whole characters, and no text that may still turn out to be the beginning of
// a stop string. Text that is held back for these reasons comes with a later piece, at the latest with the last one. If the generation ends
// in an error or is cancelled, there is no last piece, but Session::tokens() has the tokens.
struct Piece {
  Token token = -1;
  std::string text = {};
  FinishReason finish = FinishReason::none;  // set on the last piece
  std::int32_t stop_string = -1;             // index into GenerateOptions::stop_strings, if `finish` is stop_string
  std::vector<TokenLogprob> top = {};        // the most likely tokens, the likeliest first; empty if GenerateOptions::logprobs is 0
  float logprob = 0.0f;                      // log-probability of `token`; 0 if GenerateOptions::logprobs is 0
};

// Figures of a generation. Times are in seconds.
struct Figures {
  std::size_t prompt_tokens = 0;         // tokens appended since the previous generation
  std::size_t tokens = 0;                // tokens generated
  double prompt_seconds = 0.0;
  double time_to_first_token = 0.0;      // prompt included
  double generation_seconds = 0.0;       // time of all tokens together
  double tokens_per_second = 0.0;        // of the tokens after the first
  std::uint64_t bytes_per_token = 0;     // bytes of weights and KV cache that were read for the last token
  std::size_t steps = 0;                 // steps that produced tokens
  std::size_t drafted = 0;               // drafts that were in a step
  std::size_t accepted = 0;              // drafts that the sampler drew
};

struct GenerationSummary {
  FinishReason finish = FinishReason::none;
  Figures figures;
};

// The pieces of a generation, as an input range: a program can iterate over them once.
//
//   for (const auto& piece : session.generate(sampler, {.max_tokens = 100})) {
//     if (!piece) return report(piece.error());
//     std::fputs(piece->text.c_str(), stdout);
//   }
//
// A backend that can draw tokens (a GPU can) draws all tokens except the first, if the sampler has a recipe(), the tokenizer has no
// suppressed() tokens, and GenerateOptions::logprobs is 0. The logits then stay on the device. Tokens and errors are the same as if the
// sampler drew. Exception: if the random number lies within rounding (1e-6) of the border between two tokens, the other token may be drawn.
class Generation {
 public:
  Generation() noexcept;  // an empty handle (docs/headers.md)
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // Returns the next piece; nullopt after the last one. An error is the last element.
  [[nodiscard]] std::optional<Result<Piece>> next() noexcept;

  class Iterator {
   public:
    using value_type = Result<Piece>;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    explicit Iterator(Generation& generation) noexcept : generation_(&generation), current_(generation.next()) {}
    [[nodiscard]] const Result<Piece>& operator*() const noexcept { return *current_; }
    Iterator& operator++() noexcept {
      current_ = generation_->next();
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !current_.has_value(); }

   private:
    Generation* generation_;
    std::optional<Result<Piece>> current_;
  };
  [[nodiscard]] Iterator begin() noexcept { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  [[nodiscard]] FinishReason finish_reason() const noexcept;
  [[nodiscard]] Figures figures() const noexcept;
  // Returns the drafter's error; success if the drafter has not failed. After the error the generation goes on without drafts.
  [[nodiscard]] Status drafting() const noexcept;

  struct State;

 private:
  friend class Session;
  explicit Generation(Result<std::unique_ptr<State>> state) noexcept;
  std::unique_ptr<State> state_;
  Error failure_;            // the reason why the generation could not be made
  bool has_ended_ = false;   // next() has returned failure_, or an empty handle's error
};

}  // namespace tessera
