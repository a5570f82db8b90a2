// Reports the progress of a stream's prompt, for clients that wait for the answer.
#pragma once

#include <string>

#include <tessera/json/json.hpp>

#include "answers/answer_writer.hpp"

namespace server {

// Returns the progress as JSON, in the form of llama.cpp's server: {"total": tokens of the prompt, "cache": tokens that were cached,
// "processed": tokens that are computed or were cached, "time_ms": milliseconds since the prompt's first step began}.
[[nodiscard]] tessera::Json to_json(const PromptProgress& progress);

// Shows the progress of a prompt to clients that have not asked for events of progress: as comments in the stream, `: prompt_progress
// {...}`. A comment is a line that begins with ":"; clients of server-sent events skip it.
class ProgressComments {
 public:
  // Returns a comment, or "" if none is due: at most four comments a second, and none after the prompt is computed.
  [[nodiscard]] std::string next(const PromptProgress& progress);

 private:
  static constexpr double kEvery = 0.25;  // seconds
  double due_ = 0.0;
};

}  // namespace server
