// How far the prompt of a stream is computed, for clients that wait for its answer.
#pragma once

#include <string>

#include <tessera/json/json.hpp>

#include "answer_writer.hpp"

namespace server {

// {"total", "cache", "processed", "time_ms"}, as llama.cpp's server has them: tokens of the prompt, of them those that were there
// already, those that are computed ("cache" among them), and milliseconds since its first step began.
[[nodiscard]] tessera::Json to_json(const PromptProgress& progress);

// The comments of a stream whose client has not asked for events: `: prompt_progress {...}`, which clients of server-sent events
// pass over.
class ProgressComments {
 public:
  // The comment that is due, or "": at most four a second, and none for a prompt that is computed.
  [[nodiscard]] std::string next(const PromptProgress& progress);

 private:
  static constexpr double kEvery = 0.25;  // seconds
  double due_ = 0.0;
};

}  // namespace server
