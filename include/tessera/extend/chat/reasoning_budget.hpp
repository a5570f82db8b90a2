// A stage of a sampler that bounds how long a model reasons: after a number of tokens of reasoning the stage writes the end of the
// reasoning, unless the model has ended it before.
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
  std::size_t tokens = 0;            // tokens of reasoning at most, markers not counted; 0: reasoning is ended as soon as it begins
  bool starts_in_reasoning = false;  // the prompt ends in reasoning (OutputFormat::ends_in_reasoning())
  std::string last_words{};          // text that the stage writes in front of the end: "\nTime is up.\n"
};

// The stage. Put it first in its chain, or behind a grammar. It follows one text at a time (Sampler::begin_text()), and a copy counts for
// itself. It counts the tokens that the sampler accepts, so Sampler::accept() must be called for each token, as generations and
// schedulers do. When the budget is used up, it waits for the end of a character (UTF-8) before it writes the end of the reasoning. It
// does not write the end if a stage before it, a grammar for example, forbids that.
class ReasoningBudget {
 public:
  ReasoningBudget() noexcept = default;  // an empty handle (docs/headers.md)
  static constexpr std::string_view kName = "reasoning budget";

  // Makes the stage for the reasoning of a format. Errors: unsupported, a format without reasoning; those of Tokenizer::encode() for
  // the text of the end.
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
  // The state after some number of accepted tokens.
  struct State {
    std::size_t text = 0;     // bytes of text_
    std::size_t scanned = 0;  // bytes of text_ in which no further marker begins
    std::size_t tokens = 0;   // tokens of reasoning
    std::size_t written = 0;  // tokens of the end that the stage has written
    std::size_t region = 0;   // reasoning region of the format that is open, counted from 1; 0: none
  };
  explicit ReasoningBudget(std::shared_ptr<const Rules> rules);
  [[nodiscard]] bool is_over() const noexcept;
  void scan();

  std::shared_ptr<const Rules> rules_;
  std::string text_;           // text since the answer began; control tokens by their names
  std::vector<State> states_;  // [accepted + 1]
};

}  // namespace tessera
