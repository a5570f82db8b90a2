#include "fields/custom_tools.hpp"

#include <fmt/format.h>

#include "fields/lark.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;

Json text_parameters(const std::string& pattern) {
  Object text = Object().set("type", "string");
  if (!pattern.empty()) text.set("pattern", pattern);
  return Object()
      .set("type", "object")
      .set("properties", Object().set("input", std::move(text)))
      .set("required", Json::Array{Json("input")})
      .set("additionalProperties", false);
}

Json custom_function(const std::string& name, const std::optional<std::string>& description) {
  Object function = Object().set("name", name);
  if (description) function.set("description", *description);
  function.set("parameters", text_parameters(""));
  return Object().set("type", "function").set("function", std::move(function));
}

std::optional<std::string> custom_pattern(Fields& grammar) {
  const auto definition = grammar.text("definition");
  const std::string syntax = grammar.choice("syntax", {"lark", "regex"}).value_or("lark");
  if (!definition) return std::nullopt;
  return fmt::format("^(?:{})$", syntax == "regex" ? *definition : pattern_of_lark(*definition, grammar.path_of("definition")));
}

std::string custom_input(const std::string& arguments) {
  for (const char* end : {"", "\"}", "}"}) {
    const auto json = Json::parse(arguments + end);
    const Json* input = json ? json->find("input") : nullptr;
    if (input != nullptr && input->string() != nullptr) return *input->string();
  }
  return {};
}

}  // namespace server
