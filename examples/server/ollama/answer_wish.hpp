// The fields that /api/chat and /api/generate share: sampling parameters, form and reasoning of the answer, and how it is sent.
#pragma once

#include <optional>
#include <string>

#include "apis/api.hpp"
#include "fields/chat_fields.hpp"

namespace server::ollama {

// The field `think`: whether an answer begins with reasoning, and how much.
struct Thinking {
  std::optional<bool> on{};  // nullopt: the template's default
  std::string effort{};      // "low", "medium", "high"
};

struct AnswerWish {
  std::string name;  // the model's name in the answer
  AnswerFields drawing{};
  std::optional<AnswerForm> form{};
  Thinking thinking{};
  bool streams = true, cuts_prompt = true, unloads = false;
};

// Reads model, options, format, think, truncate, keep_alive, stream, logprobs, and other servers' fields for the form of the answer
// (read_guided()). A field of `options` may also stand in the body itself; if both have the field, the one in `options` counts. Notes
// fields that have less effect than the client demands.
[[nodiscard]] AnswerWish read_answer_wish(Fields& fields, const Api& api, const Call& call);
void set_thinking(ChatFields& chat, const Thinking& thinking);

// Returns the seconds of keep_alive, a duration ("5m", "1h30m", seconds as a number); nullopt: the field is absent.
[[nodiscard]] std::optional<double> keep_alive_of(Fields& fields);
// Looks at keep_alive after the server has applied it. If the model stays loaded whatever keep_alive says (Api::stays), notes that the
// field has no effect. Returns whether the duration is zero, by which a client asks to unload the model.
[[nodiscard]] bool read_keep_alive(Fields& fields, const Api& api, Notes& notes);
// Returns the context that the request asks for, in tokens: num_ctx if the field is present and below the model's context; otherwise 0,
// which means the model's whole context. Adds a warning to `notes` if num_ctx is above the model's context.
[[nodiscard]] std::size_t read_context(Fields& options, const ServedModel& model, Notes& notes);

}  // namespace server::ollama
