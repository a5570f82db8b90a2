#include "chat/jinja/library/from_json.hpp"

#include <algorithm>

namespace tessera::jinja {
namespace {

constexpr int kDeepest = 190;

bool is_usual_role(std::string_view role) {
  for (const std::string_view usual :
       {"system", "user", "assistant", "tool", "developer", "function", "model", "ipython", "observation", "environment",
        "context", "human", "bot", "tool_call", "tool_response", "latest_reminder", "critic"}) {
    if (role == usual) return true;
  }
  return false;
}

Value convert(Budget& budget, const Json& json, int depth) {
  if (depth > kDeepest) fail("a request nested too deep", ErrorCode::over_budget);
  constexpr TextOrigin origin = TextOrigin::from_message;
  if (const bool* truth = json.boolean()) return Value::boolean(*truth);
  if (const std::int64_t* integer = json.integer()) return Value::integer(*integer, origin);
  if (const double* number = json.number()) return Value::floating(*number, origin);
  if (const auto* written = json.written_number()) {
    return Value::object(Kind::big_integer, std::make_shared<String>(budget, Text(written->text, origin)));
  }
  if (const std::string* text = json.string()) return make_string(budget, *text, origin);
  if (const Json::Array* elements = json.elements()) {
    Values items;
    items.reserve(elements->size());
    for (const Json& element : *elements) items.push_back(convert(budget, element, depth + 1));
    return make_list(budget, std::move(items));
  }
  if (const Json::Object* object = json.members()) {
    Members members;
    members.reserve(object->size());
    for (const auto& [key, value] : *object) {
      Value converted = convert(budget, value, depth + 1);
      members.emplace_back(make_string(budget, key, origin), std::move(converted));
    }
    return make_dict(budget, std::move(members));
  }
  return Value::none();
}

}  // namespace

Value from_json(Budget& budget, const Json& json) { return convert(budget, json, 0); }

Value messages_from_json(Budget& budget, const Json& messages) {
  const Json::Array* elements = messages.elements();
  if (elements == nullptr) return convert(budget, messages, 0);
  Values items;
  for (const Json& message : *elements) {
    const Json::Object* object = message.members();
    if (object == nullptr) {
      items.push_back(convert(budget, message, 1));
      continue;
    }
    Members members;
    for (const auto& [key, value] : *object) {
      const std::string* role = key == "role" ? value.string() : nullptr;
      Value converted = role != nullptr && is_usual_role(*role) ? make_string(budget, *role) : convert(budget, value, 2);
      members.emplace_back(make_string(budget, key, TextOrigin::from_message), std::move(converted));
    }
    items.push_back(make_dict(budget, std::move(members)));
  }
  return make_list(budget, std::move(items));
}

std::uint64_t json_bytes(const Json& json) {
  std::uint64_t bytes = 16;
  if (const std::string* text = json.string()) bytes += text->size();
  if (const Json::Array* elements = json.elements()) {
    for (const Json& element : *elements) bytes += json_bytes(element);
  }
  if (const Json::Object* members = json.members()) {
    for (const auto& [key, value] : *members) bytes += key.size() + json_bytes(value);
  }
  return bytes;
}

}  // namespace tessera::jinja
