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
  by_goodput = 0,  // as many drafts as give the most tokens a second, by measured times; no drafts if they do not pay
  longest = 1,     // always max_drafts
};

// Options of speculation. In each step a drafter (extend/decoding/drafter.hpp) proposes the next tokens (drafts), and the step computes
// them together with the token before them. A draft is kept if the sampler draws the same token at its place. So only the time changes:
// tokens, log-probabilities, text, keys and values are the same bits as without speculation. Exception: on a backend whose bits depend on
// the number of rows in a step, bits may differ, unless Numerics::invariant is set.
// Cost: memory for the logits of max_drafts rows.
struct SpeculateOptions {
  std::shared_ptr<const Drafter> drafter = {};  // none: no speculation
  std::uint32_t max_drafts = 8;                 // drafts in a step at most, 1 to 64
  DraftLength length = DraftLength::by_goodput;
  // For drafters that make trees of drafts: the largest number of chains in the tree, 1 to 16. Where several tokens may follow, the tree
  // has a chain for each of them, and the longest chain of accepted drafts is kept. During a step, each chain except the first takes a page
  // of each group of layers (layers with the same window). The tree has one chain if no page is free, or if pages cannot be forked
  // (contiguous sessions, recurrent layers, a loaded MTP head, a token budget).
  std::uint32_t branches = 1;
};

// Stretches of the text in which stop strings do not end the generation, such as the reasoning of an answer.
struct StopFree {
  std::vector<MarkedText> stretches{};  // stop strings are not looked for in the markers of a stretch either
  bool starts_inside = false;           // the text begins within the first of the stretches
};

struct GenerateOptions {
  std::size_t max_tokens = 0;                 // most tokens to draw; 0: no limit, and a full context is an error
  std::vector<Token> stop_tokens = {};        // tokens that end the text; the token is delivered, without text
  std::vector<std::string> stop_strings = {}; // texts that end the generation, also across tokens; the text is cut before the match
  EndOfGeneration end_of_generation = EndOfGeneration::stop;
  // Says whether the names of control tokens appear in the text (`show`) or not (`omit`). OutputParser needs them in the text. Exception:
  // the token that ends the text never appears.
  ControlText control_text = ControlText::omit;
  // Only with ControlText::show: the control tokens whose names appear in the text; nullopt: all. An answer of a conversation shows only
  // the tokens of which the markers of its output format consist (marker_tokens()), so that its content has no other control tokens.
  std::optional<std::vector<Token>> shown_control = {};
  // Stretches of the text in which stop strings have no effect. nullopt: there are none. Exception: in an answer of a conversation, nullopt
  // means that stop strings have no effect in the reasoning; set an empty StopFree to make them effective there too.
  std::optional<StopFree> stop_free = {};
  std::uint32_t logprobs = 0;                 // most likely tokens to report with each piece; 0: none
  std::stop_token stop = {};                  // checked before every layer
  SpeculateOptions speculate = {};
};

struct TokenLogprob {
  Token token;
  float logprob;  // natural logarithm, of the model's own distribution (before the sampler)
};

// One token, and the text that became certain with this token. Text is certain if its characters are complete, and if it can no longer be
// the beginning of a stop string. Other text is held back and comes with a later piece, at the latest with the last one. If the generation
// ends in an error or is cancelled, there is no last piece, and text that is still held back is not delivered; Session::tokens() has the
// tokens.
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
  double tokens_per_second = 0.0;        // speed of the tokens after the first one
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
// If possible, the backend draws the tokens (a GPU can), so that the logits stay on the device. Conditions: the sampler has a recipe(), the
// tokenizer has no suppressed() tokens, and GenerateOptions::logprobs is 0. The first token is always drawn by the sampler. The tokens and
// errors are the same as if the sampler drew all tokens. Exception: the random number, from 0 to 1, chooses a token by the sums of the
// probabilities; if it lies within 1e-6 (rounding) of the border between two tokens, the other token may be drawn.
class Generation {
 public:
  Generation() noexcept;  // an empty handle (docs/headers.md)
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // Returns the next piece; nullopt after the last one. If an error ends the generation, the error is the last element.
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
