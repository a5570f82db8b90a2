#include "fields/response_tools.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "fields/custom_tools.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;

std::string ResponseTools::function_of(std::string_view space, std::string_view name) {
  if (space.empty()) return std::string(name);
  return fmt::format("{}{}{}", space, space.ends_with('_') || name.starts_with('_') ? "" : "__", name);
}

std::string ResponseTools::function_named(std::string_view space, std::string_view name) const {
  if (space.empty()) {  // tool_choice may leave the namespace out
    const auto found = std::ranges::find(tools_, name, &Tool::name);
    if (found != tools_.end()) return found->function;
  }
  return function_of(space, name);
}

const ResponseTools::Tool* ResponseTools::find(std::string_view function) const {
  const auto found = std::ranges::find(tools_, function, &Tool::function);
  return found != tools_.end() ? &*found : nullptr;
}

void ResponseTools::read(const Json::Array& list, const std::string& path, Notes& notes) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    Fields tool(list[i], place);
    const std::string type = tool.need(tool.text("type"), "type");
    if (type == "function") {
      const Json* parameters = tool.object("parameters");
      const auto strict = tool.boolean("strict");
      const auto description = tool.text("description");
      repeated_.push_back(Object()
                              .set("type", "function")
                              .set("name", tool.need(tool.text("name"), "name"))
                              .set("description", description ? Json(*description) : Json())
                              .set("parameters", parameters != nullptr ? *parameters : Json())
                              .set("strict", strict ? Json(*strict) : Json()));
    } else {
      repeated_.push_back(list[i]);
    }
    if (type != "namespace") {
      read_one(tool, "", notes);
      continue;
    }
    const std::string space = tool.need(tool.text("name"), "name");
    const Json::Array* inner = tool.list("tools");
    for (std::size_t k = 0; inner != nullptr && k < inner->size(); ++k) {
      Fields one((*inner)[k], fmt::format("{}.tools[{}]", place, k));
      read_one(one, space, notes);
    }
  }
}

void ResponseTools::read_one(Fields& tool, const std::string& space, Notes& notes) {
  const std::string type = tool.need(tool.text("type"), "type");
  if (type != "function" && type != "custom") {
    notes.leave_out(tool.path(), type, "this server has no tools of its own.");
    return;
  }
  Tool named{.name = tool.need(tool.text("name"), "name"), .space = space, .is_custom = type == "custom"};
  named.function = function_of(space, named.name);
  if (named.is_custom) return read_custom(tool, std::move(named));
  Object function = Object().set("name", named.function);
  if (auto description = tool.text("description")) function.set("description", *std::move(description));
  if (const Json* parameters = tool.object("parameters")) function.set("parameters", *parameters);
  functions_.push_back(Object().set("type", "function").set("function", std::move(function)));
  tools_.push_back(std::move(named));
}

void ResponseTools::read_custom(Fields& tool, Tool named) {
  if (const Json* given = tool.object("format")) {
    Fields format(*given, tool.path_of("format"));
    const std::string type = format.need(format.choice("type", {"text", "grammar"}), "type");
    if (auto pattern = type == "grammar" ? custom_pattern(format) : std::nullopt) patterns_.push_back({named.function, *std::move(pattern)});
  }
  functions_.push_back(custom_function(named.function, tool.text("description")));
  tools_.push_back(std::move(named));
}

}  // namespace server
