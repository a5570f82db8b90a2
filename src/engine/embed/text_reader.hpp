// Has the model read texts, as many at once as a step has room for, and gives what it computes of their rows. Nothing of a text stays.
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

// The rows of a text whose output is wanted.
enum class RowsOf : std::uint8_t { all, first, last };

struct TextTokens {
  std::span<const Token> tokens;
  std::size_t second = 0;  // tokens from here on are of segment 1; 0: all tokens are of segment 0
};

// Returns how many tokens of a text are read. `asked`: what the caller allows; 0: all. as_model: no more than the model's files say.
[[nodiscard]] std::size_t most_tokens(const Engine::State& state, std::size_t asked, bool as_model);

class TextReader {
 public:
  struct Wish {
    RowOutput output = RowOutput::embedding;
    RowsOf rows = RowsOf::all;
    std::size_t width = 0;  // floats of an output
  };
  // Takes the outputs of text `index`  [rows, width]. They are valid during the call.
  using Take = std::function<Status(std::size_t index, std::span<const float> values)>;

  TextReader(const Engine& engine, const std::shared_ptr<const Engine::State>& state, Wish wish, std::stop_token stop) noexcept;
  ~TextReader();

  // Reads the texts in their order and calls `take` for each. No text may be empty. Errors: those of a run, and of `take`.
  [[nodiscard]] Status read(std::span<const TextTokens> texts, const Take& take);

 private:
  [[nodiscard]] std::size_t rows_of(const TextTokens& text) const noexcept { return wish_.rows == RowsOf::all ? text.tokens.size() : 1; }
  // Reads texts that fit into a step.
  [[nodiscard]] Status read_together(std::span<const TextTokens> texts, std::size_t first, const Take& take);

  const Engine& engine_;
  const std::shared_ptr<const Engine::State>& state_;
  Wish wish_;
  std::stop_token stop_;
  std::vector<std::unique_ptr<Session::State>> sessions_;  // one for each text of a step, used again for the texts of the next
  std::vector<float> values_;
};

}  // namespace tessera::detail
