// A sampling stage that limits how long a model reasons. After a number of reasoning tokens, the stage forces the marker that ends the
// reasoning, unless the model has already written it.
//
//   auto budget = talk.reasoning_budget({.tokens = 500});   // or ReasoningBudget::create(tokenizer, format, ...)
//   auto sampler = sampling::chain().stage(*budget).temperature(0.6f).seed(1).build();
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/chat/output_format.hpp>
#include <tessera/extend/sampling/stage.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

struct ReasoningBudgetOptions {
  std::size_t tokens = 0;            // limit of reasoning tokens, without markers; 0: reasoning ends as soon as it begins
  bool starts_in_reasoning = false;  // the prompt ends in reasoning (OutputFormat::ends_in_reasoning())
  std::string last_words{};          // text that the stage writes before the end marker: "\nTime is up.\n"
};

// The stage that enforces the limit. Put it first in its chain, or directly after a grammar. It follows one text at a time: the text begins
// at Sampler::begin_text(), and a copy of the stage counts the tokens of its own text. It counts the tokens that the sampler accepts, so
// Sampler::accept() must be called for each token, as generations and schedulers do.
// When the budget is used up, the stage waits until a UTF-8 character is complete, then writes the end of the reasoning. Exception: if an
// earlier stage (a grammar, for example) forbids the end, the stage does not write it.
class ReasoningBudget {
 public:
  ReasoningBudget() noexcept = default;  // an empty handle (docs/headers.md)
  static constexpr std::string_view kName = "reasoning budget";

  // Makes the stage for a format's reasoning. Errors: unsupported, the format has no reasoning; errors of Tokenizer::encode() for the text
  // that ends the reasoning.
  [[nodiscard]] static Result<ReasoningBudget> create(const Tokenizer& tokenizer, const OutputFormat& format,
                                                      const ReasoningBudgetOptions& options) noexcept;

  [[nodiscard]] Status check() const noexcept;  // invalid_state: the handle is empty
  [[nodiscard]] Hash128 tokenizer() const noexcept;
  [[nodiscard]] bool text_ended() const noexcept { return false; }
  Status operator()(sampling::Candidates& candidates, const sampling::Context&);
  Status accept(Token token, float);
  void rollback(std::size_t n) noexcept;

 private:
  struct Rules;
  // The numbers that the stage has computed from the accepted tokens. One State is kept for each number of tokens (states_), so that
  // rollback() can return to it.
  struct State {
    std::size_t text = 0;     // bytes of text_
    std::size_t scanned = 0;  // bytes at the beginning of text_ that were searched: no further marker begins there
    std::size_t tokens = 0;   // tokens of reasoning
    std::size_t written = 0;  // tokens of the end marker that the stage has written
    std::size_t region = 0;   // number of the open reasoning region in the format, counted from 1; 0: none is open
  };
  explicit ReasoningBudget(std::shared_ptr<const Rules> rules);
  [[nodiscard]] bool is_over() const noexcept;
  void scan();

  std::shared_ptr<const Rules> rules_;
  std::string text_;           // text since the answer began; a control token appears as its name
  std::vector<State> states_;  // [accepted + 1]
};

}  // namespace tessera
