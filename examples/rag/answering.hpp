// Answers a question from passages: makes the prompt, which the model reads and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "search.hpp"
#include "store/saved_prefixes.hpp"

namespace rag {

inline constexpr std::string_view kInstructions =
    "Answer the question from the numbered sources that the user gives. Use only what the sources say, and name the source in brackets, such as [1]. "
    "If the sources do not have the answer, say that they do not. Be brief.";

struct AnsweringOptions {
  std::string instructions = std::string(kInstructions);
  std::size_t max_tokens = 300;
  float temperature = 0.0f;  // 0: always the likeliest token
  std::uint64_t seed = 1;
};

struct AnswerReport {
  std::string text;
  std::vector<Found> sources;  // in the order of their numbers, from [1]
  std::size_t prompt_tokens = 0, reused_tokens = 0, tokens = 0;
  double seconds_to_first = 0.0, seconds = 0.0;
  tessera::FinishReason finish = tessera::FinishReason::none;
  std::string warning = {};  // a sentence, if a step failed that the answer does not need; else empty
};

class Answerer {
 public:
  Answerer(const tessera::Engine& engine, SavedPrefixes& saved, AnsweringOptions options) : engine_(engine), saved_(saved), options_(std::move(options)) {}

  // Reads the passages and the question, and passes the answer to `write` as it comes. Leaves out the last passages if the model's context is
  // too small for all. A requested `stop` ends the answer after the text that was written. Throws Failure.
  [[nodiscard]] AnswerReport answer(std::string_view question, std::span<const Found> found, const std::stop_token& stop,
                                    const std::function<void(std::string_view)>& write);

 private:
  [[nodiscard]] tessera::Conversation conversation(std::span<const std::string> passages, std::string_view question) const;
  [[nodiscard]] bool fits(std::span<const std::string> passages, std::string_view question) const;
  void save(std::span<const std::string> passages, const std::vector<tessera::Token>& prompt);

  const tessera::Engine& engine_;
  SavedPrefixes& saved_;
  AnsweringOptions options_;
};

// Returns a text that differs whenever saved keys and values of passages cannot be reused: it contains everything, besides the passages, on
// which they depend (the instructions in front of them, the model and its KV type). The text is the `beginning` of SavedPrefixes.
[[nodiscard]] std::string beginning(const tessera::Engine& engine, std::string_view model, const AnsweringOptions& options);

}  // namespace rag
