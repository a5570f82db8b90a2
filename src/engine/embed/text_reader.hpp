// Lets the model read texts, several in one step, and passes the outputs of their rows to the caller. The sessions in which the texts are
// read keep no tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/engine.hpp>

#include "model/step/step_description.hpp"

namespace tessera::detail {

// The rows of a text whose outputs are needed.
enum class RowsOf : std::uint8_t { all, first, last };

struct TextTokens {
  std::span<const Token> tokens;
  std::size_t second = 0;  // tokens from this index on are of segment 1; 0: all tokens are of segment 0
};

// Returns the limit of the tokens that are read of a text: the engine's context or, if smaller, the caller's limit `asked` (0: the caller
// sets no limit). as_model: the limit that the model's files state (Setting::text_tokens) counts too.
[[nodiscard]] std::size_t most_tokens(const Engine::State& state, std::size_t asked, bool as_model);

class TextReader {
 public:
  struct Wish {
    RowOutput output = RowOutput::embedding;
    RowsOf rows = RowsOf::all;
    std::size_t width = 0;  // floats of an output
  };
  // Receives the outputs of text `index`  [rows, width]. `values` is valid during the call.
  using Take = std::function<Status(std::size_t index, std::span<const float> values)>;

  TextReader(const Engine& engine, const std::shared_ptr<const Engine::State>& state, Wish wish, std::stop_token stop) noexcept;
  ~TextReader();

  // Reads the texts in order, and calls `take` for each. Precondition: no text is empty. Errors: those of a run, and those that `take`
  // returns.
  [[nodiscard]] Status read(std::span<const TextTokens> texts, const Take& take);

 private:
  [[nodiscard]] std::size_t rows_of(const TextTokens& text) const noexcept { return wish_.rows == RowsOf::all ? text.tokens.size() : 1; }
  // Reads texts that fit into one step.
  [[nodiscard]] Status read_together(std::span<const TextTokens> texts, std::size_t first, const Take& take);

  const Engine& engine_;
  const std::shared_ptr<const Engine::State>& state_;
  Wish wish_;
  std::stop_token stop_;
  std::vector<std::unique_ptr<Session::State>> sessions_;  // one for each text of a step; the next step uses them again
  std::vector<float> values_;
};

}  // namespace tessera::detail
