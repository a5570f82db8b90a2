// Reads a request of OpenAI's Responses API as chat fields, and keeps the fields that the response repeats.
#pragma once

#include "fields/answer_fields.hpp"
#include "fields/chat_fields.hpp"
#include "fields/response_tools.hpp"
#include "json_object.hpp"

namespace server {

struct ResponseFields {
  ChatFields chat;
  ResponseTools tools{};
  AnswerFields answer;
  bool streams = false, shows_progress = false;
  Object repeated{};  // fields that the response repeats: "instructions", "tools", "temperature", ...
};

// Reads the request. Refuses fields that need an earlier response, because nothing is stored.
[[nodiscard]] ResponseFields read_response(Fields& fields, const ServedModel& model, const RequestLimits& limits, Notes& notes);

}  // namespace server
