// Makes bodies of requests to the servers behind the gateway from the body of a client's request.
#pragma once

#include <string>

#include <tessera/json/json.hpp>

#include "requests/question.hpp"

namespace gateway {

inline void remove_member(tessera::Json& object, std::string_view key) {
  if (object.members() != nullptr) std::erase_if(*object.members(), [&](const auto& member) { return member.first == key; });
}

// Returns the body with a tier's model in place of the client's, if the tier has a name for its model.
[[nodiscard]] inline tessera::Json body_for(const Question& question, const std::string& model) {
  tessera::Json body = question.body;
  if (!model.empty()) body.set("model", model);
  return body;
}
// Returns the body of a request whose answer comes as one object.
[[nodiscard]] inline tessera::Json whole_body(const Question& question, const std::string& model) {
  tessera::Json body = body_for(question, model);
  remove_member(body, "stream");
  remove_member(body, "stream_options");
  return body;
}
// Returns the body of a request whose answer comes as a stream that ends with its usage.
[[nodiscard]] inline tessera::Json stream_body(const Question& question, const std::string& model) {
  tessera::Json body = body_for(question, model);
  const tessera::Json* given = body.find("stream_options");
  tessera::Json options = given != nullptr && given->members() != nullptr ? *given : tessera::Json::object();
  options.set("include_usage", true);
  body.set("stream", true);
  body.set("stream_options", std::move(options));
  return body;
}

}  // namespace gateway
