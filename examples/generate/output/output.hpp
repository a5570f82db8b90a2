// Prints a generation: as text, token ids or JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

// The end of a generation, with its figures.
struct Outcome {
  tessera::FinishReason finish = tessera::FinishReason::none;
  tessera::Figures figures;
  std::optional<std::uint64_t> seed = {};  // none if nothing was drawn
  std::optional<tessera::Error> error = {};
  std::vector<tessera::AdapterUse> adapters = {};  // adapters of the session
};

class Output {
 public:
  virtual ~Output() = default;
  virtual void begin(const std::string& prompt, std::span<const tessera::Token> tokens) = 0;
  virtual void piece(const tessera::Piece& piece) = 0;
  virtual void end(const Outcome& outcome) = 0;
};

// Makes the output that options.output names.
[[nodiscard]] std::unique_ptr<Output> make_output(const Options& options, const tessera::Tokenizer& tokenizer);
[[nodiscard]] std::unique_ptr<Output> make_json_output(const Options& options, const tessera::Tokenizer& tokenizer);

// Return results of the modes that do not generate, as JSON.
[[nodiscard]] std::string tokens_json(std::span<const tessera::Token> tokens);
[[nodiscard]] std::string text_json(const std::string& text);
[[nodiscard]] std::string plan_json(const std::string& model, const tessera::Plan& plan);
[[nodiscard]] std::string explain_json(const std::string& model, std::string_view numerics, std::span<const tessera::KernelUse> uses,
                                       std::span<const tessera::AdapterUse> adapters);

// Returns a token's text in double quotes, with line ends and other control characters escaped.
[[nodiscard]] std::string quoted(std::string_view text);

// Returns "max tokens", "interrupted", ...
[[nodiscard]] std::string_view reason(const Outcome& outcome);
