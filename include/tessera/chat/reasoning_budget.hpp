// How long a model may reason: a stage of a sampler that writes the end of the reasoning when so many tokens of it are there,
// unless the model has ended it before.
//
//   auto budget = talk.reasoning_budget({.tokens = 500});   // or ReasoningBudget::create(tokenizer, format, ...)
//   auto sampler = sampling::chain().stage(*budget).temperature(0.6f).seed(1).build();
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/output_format.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/sampling/stage.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

struct ReasoningBudgetOptions {
  std::size_t tokens = 0;            // of reasoning, its markers not counted; 0: none, where the model begins some it is ended
  bool starts_in_reasoning = false;  // as OutputParserOptions has it
  std::string last_words{};          // stand in front of the end that the stage writes: "\nTime is up.\n"
};

// For one text at a time (Sampler::begin_text()); the first of its chain, or behind a grammar. A copy goes its own way. It counts
// what the sampler accepts: so it is used where Sampler::accept() is called for each token, as generations and schedulers do. It ends
// no reasoning within a character, nor where a stage before it forbids the end.
class ReasoningBudget {
 public:
  ReasoningBudget() noexcept = default;  // an empty handle (docs/headers.md)
  static constexpr std::string_view kName = "reasoning budget";

  // Errors: unsupported, a format without reasoning; what the tokenizer says of the end's text.
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
  // Where the text stands.
  struct State {
    std::size_t text = 0;     // bytes of it
    std::size_t scanned = 0;  // of them: no marker begins in these
    std::size_t tokens = 0;   // of reasoning
    std::size_t written = 0;  // tokens of the end that the stage writes
    std::size_t region = 0;   // the reasoning that is open, from 1; 0: none
  };
  explicit ReasoningBudget(std::shared_ptr<const Rules> rules);
  [[nodiscard]] bool is_over() const noexcept;
  void scan();

  std::shared_ptr<const Rules> rules_;
  std::string text_;           // since the answer began, control tokens by their names
  std::vector<State> states_;  // [accepted + 1]
};

}  // namespace tessera
