// Prints text or token ids on standard output, and log-probabilities and the line of figures on standard error.
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "adapters.hpp"
#include "output/output.hpp"
#include "output/terminal.hpp"

using tessera::Piece;
using tessera::Token;
using tessera::Tokenizer;

namespace {

void print_figures(const Outcome& outcome) {
  const tessera::Figures& f = outcome.figures;
  std::string line = fmt::format("{} {} after a prompt of {}", f.tokens, f.tokens == 1 ? "token" : "tokens",
                                 f.prompt_tokens);
  if (f.tokens > 0) line += fmt::format("; first after {}", human_seconds(f.time_to_first_token));
  if (f.tokens > 1) line += fmt::format("; {:.4g} tokens/s", f.tokens_per_second);
  if (f.tokens > 0) line += fmt::format("; {} read a token", human_bytes(f.bytes_per_token));
  if (f.drafted > 0) {
    line += fmt::format("; {:.3g} tokens a step, {} of {} drafts accepted",
                        1.0 + static_cast<double>(f.accepted) / static_cast<double>(f.steps), f.accepted, f.drafted);
  }
  if (f.exit_tries > 0) line += fmt::format("; {} of {} tokens left early, {:.1f} % of the layers saved", f.exited, f.tokens, 100.0 * f.layers_saved);
  for (const tessera::AdapterUse& use : outcome.adapters) line += fmt::format("; adapter {}, scale {}", adapter_name(use.adapter), use.scale);
  if (outcome.seed) line += fmt::format("; seed {}", *outcome.seed);
  fmt::print(stderr, "[{}; {}]\n", line, reason(outcome));
}

// A table with a line for each token: the token, then the likeliest tokens.
class LogprobTable {
 public:
  explicit LogprobTable(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  void add(const Piece& piece) {
    if (piece.top.empty() || piece.token < 0) return;
    text_ += fmt::format("{:6} {:>9.4f} {:<14} |", piece.token, piece.logprob, quoted(tokenizer_.piece(piece.token)));
    for (const tessera::TokenLogprob& top : piece.top) {
      text_ += fmt::format(" {} {:.4f}", quoted(tokenizer_.piece(top.token)), top.logprob);
    }
    text_ += '\n';
  }

  void print() const {
    if (text_.empty()) return;
    fmt::print(stderr, "{:>6} {:>9} {:<14} | most likely\n{}", "token", "logprob", "text", text_);
  }

 private:
  Tokenizer tokenizer_;
  std::string text_;
};

class TextOutput final : public Output {
 public:
  TextOutput(const Options& options, const Tokenizer& tokenizer)
      : at_end_(options.output == OutputKind::text_at_end), echo_(!options.no_echo), logprobs_(tokenizer) {}

  void begin(const std::string& prompt, std::span<const Token>) override {
    if (echo_) write(prompt);
  }

  void piece(const Piece& piece) override {
    logprobs_.add(piece);
    write(piece.text);
  }

  void end(const Outcome& outcome) override {
    if (!ends_line_) write("\n");
    if (at_end_) print(held_);
    logprobs_.print();
    print_figures(outcome);
  }

 private:
  void write(std::string_view text) {
    if (text.empty()) return;
    ends_line_ = text.back() == '\n';
    if (at_end_) {
      held_ += text;
    } else {
      print(text);
    }
  }

  bool at_end_;
  bool echo_;
  bool ends_line_ = false;
  std::string held_;
  LogprobTable logprobs_;
};

class TokenOutput final : public Output {
 public:
  explicit TokenOutput(const Tokenizer& tokenizer) : logprobs_(tokenizer) {}

  void begin(const std::string&, std::span<const Token>) override {}

  void piece(const Piece& piece) override {
    if (piece.token < 0) return;
    logprobs_.add(piece);
    print(fmt::format("{}{}", first_ ? "" : " ", piece.token));
    first_ = false;
  }

  void end(const Outcome& outcome) override {
    print("\n");
    logprobs_.print();
    print_figures(outcome);
  }

 private:
  bool first_ = true;
  LogprobTable logprobs_;
};

}  // namespace

std::unique_ptr<Output> make_output(const Options& options, const Tokenizer& tokenizer) {
  switch (options.output) {
    case OutputKind::json: return make_json_output(options, tokenizer);
    case OutputKind::tokens: return std::make_unique<TokenOutput>(tokenizer);
    default: return std::make_unique<TextOutput>(options, tokenizer);
  }
}

std::string_view reason(const Outcome& outcome) {
  using tessera::FinishReason;
  if (outcome.error) return outcome.error->code() == tessera::ErrorCode::cancelled ? "interrupted" : "failed";
  switch (outcome.finish) {
    case FinishReason::max_tokens: return "as many as allowed";
    case FinishReason::end_of_generation: return "the end";
    case FinishReason::stop_token:
    case FinishReason::stop_string: return "stop text";
    default: return tessera::to_string(outcome.finish);
  }
}
