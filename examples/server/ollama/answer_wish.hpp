// The fields that /api/chat and /api/generate share: how the answer is drawn, its form, its reasoning, how it is sent.
#pragma once

#include <optional>
#include <string>

#include "api.hpp"
#include "chat_fields.hpp"

namespace server::ollama {

// Says whether an answer begins with reasoning.
struct Thinking {
  std::optional<bool> on{};  // nullopt: as the template has it
  std::string effort{};      // "low", "medium", "high"
};

struct AnswerWish {
  std::string name;  // of the model, for the answer
  AnswerFields drawing{};
  std::optional<AnswerForm> form{};
  Thinking thinking{};
  bool streams = true, cuts_prompt = true, unloads = false;
};

// Reads model, options, format, think, truncate, keep_alive, stream, logprobs, and peers' names for the form. A field of `options` that
// stands beside it is read too; the one in `options` wins. Notes what has less effect than it says.
[[nodiscard]] AnswerWish read_answer_wish(Fields& fields, const Api& api, Notes& notes);
void set_thinking(ChatFields& chat, const Thinking& thinking);

// Reads keep_alive, a duration ("5m", "1h30m", seconds as a number), and notes that the model stays loaded anyway. Returns whether the
// duration is zero, which asks to unload the model.
[[nodiscard]] bool read_keep_alive(Fields& fields, Notes& notes);
// Reads num_ctx, at most the model's context. 0: nothing is said, or no less than the model has.
[[nodiscard]] std::size_t read_context(Fields& options, const ServedModel& model, Notes& notes);

}  // namespace server::ollama
