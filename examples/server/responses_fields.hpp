// A request of OpenAI's Responses as chat fields, and what of it the response repeats.
#pragma once

#include "answer_fields.hpp"
#include "chat_fields.hpp"
#include "json_object.hpp"
#include "response_tools.hpp"

namespace server {

struct ResponseFields {
  ChatFields chat;
  ResponseTools tools{};
  AnswerFields answer;
  bool streams = false, shows_progress = false;
  Object repeated{};  // as the response has them: "instructions", "tools", "temperature", ...
};

// Nothing is stored: what would need an earlier response is refused.
[[nodiscard]] ResponseFields read_response(Fields& fields, const ServedModel& model, const RequestLimits& limits, Notes& notes);

}  // namespace server
