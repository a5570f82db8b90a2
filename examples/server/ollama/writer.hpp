// Writes answers of /api/chat and /api/generate: one object, or a stream of objects, a line each (NDJSON).
#pragma once

#include <memory>
#include <string>

#include <tessera/text/tokenizer.hpp>

#include "answers/answer_writer.hpp"
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
  std::size_t top = 0;  // number of likeliest tokens to report with each token
};

// Makes a writer. The tokenizer must outlive the writer. The answer's durations are measured from this call on.
[[nodiscard]] std::unique_ptr<AnswerWriter> make_writer(AnswerShape shape, const tessera::Tokenizer& tokenizer, HttpReplyPtr reply);
// Returns the answer to a request without a prompt, which asks to load or unload the model.
[[nodiscard]] HttpResponse loaded_response(Form form, const std::string& model, bool unloads);

}  // namespace server::ollama
