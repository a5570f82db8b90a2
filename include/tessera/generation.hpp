// Text, piece by piece: what Session::generate() gives.
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
  cancelled = 7,          // a stop was requested; the last element is the error that says so
};

[[nodiscard]] std::string_view to_string(FinishReason reason) noexcept;

enum class EndOfGeneration : std::int32_t { stop = 0, ignore = 1 };

enum class DraftLength : std::int32_t {
  by_goodput = 0,  // as many as give the most tokens a second by what has been measured; none, if none pay
  longest = 1,     // always as many as there may be
};

// Speculation: tokens that a drafter proposes (decoding/drafter.hpp) are computed in one step with the token before them,
// and each is kept if it is what the sampler draws there. So it is seen in the time alone: tokens, log-probabilities,
// text, keys and values are those without it, bit for bit. (On a backend whose bits depend on the batch, which
// Numerics::invariant forbids, they are those of such a batch.) The logits of max_drafts rows are held meanwhile.
struct SpeculateOptions {
  std::shared_ptr<const Drafter> drafter = {};  // none: no speculation
  std::uint32_t max_drafts = 8;                 // in a step, 1 to 64
  DraftLength length = DraftLength::by_goodput;
  // Chains of a tree of drafts at most, 1 to 16, of a drafter that has trees: they branch where it is uncertain what follows, and
  // the longest one that is right is kept. Each but the first takes a page of each group of layers while its step lasts. Drafts
  // are one chain where there is no page, where pages cannot be forked (a contiguous session, recurrent layers, a loaded MTP head, a
  // budget of tokens), and on CUDA.
  std::uint32_t branches = 1;
};

struct GenerateOptions {
  std::size_t max_tokens = 0;                 // 0: until something else ends it; a full context is an error
  std::vector<Token> stop_tokens = {};        // the token that matches is delivered, without text
  std::vector<std::string> stop_strings = {}; // text is cut before the match, which may straddle tokens
  EndOfGeneration end_of_generation = EndOfGeneration::stop;
  // show: control tokens are in the text by their names, as OutputParser reads them; the token that ends it is not.
  ControlText control_text = ControlText::omit;
  std::uint32_t logprobs = 0;                 // the n most likely tokens with each piece; 0: none
  std::stop_token stop = {};                  // looked at before every layer
  SpeculateOptions speculate = {};
};

struct TokenLogprob {
  Token token;
  float logprob;  // natural logarithm, of the model's own distribution (before the sampler)
};

// One token, and the text that became certain with it: whole characters, and nothing that may still turn out to begin a
// stop string. What was held back comes with the last piece; if the generation ends in an error or is cancelled, there is
// none, and Session::tokens() has it.
struct Piece {
  Token token = -1;
  std::string text = {};
  FinishReason finish = FinishReason::none;  // set on the last piece
  std::int32_t stop_string = -1;             // FinishReason::stop_string: which of GenerateOptions::stop_strings
  std::vector<TokenLogprob> top = {};        // if asked for: most likely first
  float logprob = 0.0f;                      // of `token`, if asked for
};

// Times in seconds.
struct Figures {
  std::size_t prompt_tokens = 0;         // appended since the previous generation
  std::size_t tokens = 0;                // generated
  double prompt_seconds = 0.0;
  double time_to_first_token = 0.0;      // prompt included
  double generation_seconds = 0.0;       // all tokens
  double tokens_per_second = 0.0;        // after the first
  std::uint64_t bytes_per_token = 0;     // weights and KV read for the last token
  std::size_t steps = 0;                 // that gave a token, or several
  std::size_t drafted = 0;               // drafts that were in a step
  std::size_t accepted = 0;              // of them: what the sampler drew
};

struct GenerationSummary {
  FinishReason finish = FinishReason::none;
  Figures figures;
};

// A single pass over the pieces: an input range.
//
// Where the backend can draw tokens (a GPU's does), a sampler has a recipe(), the tokenizer has no suppressed() tokens and
// no log-probabilities are asked for, the tokens after the first are drawn there, and logits do not come to the host: the
// same tokens as the sampler draws from the same logits, but for random numbers within rounding (1e-6) of a border between
// two tokens. Errors are the same.
class Generation {
 public:
  Generation() noexcept;  // an empty handle (docs/headers.md)
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // The next piece; nullopt after the last. An error is the last element.
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
  // The error of a drafter: from then on there have been no drafts, and the tokens went on without.
  [[nodiscard]] Status drafting() const noexcept;

  struct State;

 private:
  friend class Session;
  explicit Generation(Result<std::unique_ptr<State>> state) noexcept;
  std::unique_ptr<State> state_;
  Error failure_;            // of a generation that could not be made
  bool has_ended_ = false;   // that error, or the one of an empty handle, has been given
};

}  // namespace tessera
