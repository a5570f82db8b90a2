// Answers as /api/chat and /api/generate write them: one object, or a stream of objects, a line each (NDJSON).
#pragma once

#include <memory>
#include <string>

#include <tessera/text/tokenizer.hpp>

#include "answer_writer.hpp"
#include "http.hpp"

namespace server::ollama {

enum class Form {
  chat,     // {"message": {"role", "content", "thinking", "tool_calls"}}
  generate  // {"response", "thinking", "tool_calls"}
};

struct AnswerShape {
  Form form;
  std::string model;
  bool streams = true, shows_logprobs = false;
  std::size_t top = 0;  // likeliest tokens beside each
};

// The tokenizer must outlive the writer. Durations count from here.
[[nodiscard]] std::unique_ptr<AnswerWriter> make_writer(AnswerShape shape, const tessera::Tokenizer& tokenizer, HttpReplyPtr reply);
// The answer to a request without a prompt, which loads the model or unloads it.
[[nodiscard]] HttpResponse loaded_response(Form form, const std::string& model, bool unloads);

}  // namespace server::ollama
