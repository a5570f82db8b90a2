// The tools of OpenAI's Responses as functions that a template can tell of, and their calls under the names that they came with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat_fields.hpp"

namespace server {

class ResponseTools {
 public:
  struct Tool {
    std::string function{};  // as the model knows it
    std::string name{};    // as the client does
    std::string space{};   // the namespace it is of
    bool is_custom = false;  // it takes a text, not arguments
  };

  // Reads a list of tools: functions, custom tools, namespaces of both. Others are a service's: left out, and noted.
  void read(const tessera::Json::Array& list, const std::string& path, Notes& notes);

  // Moves out what read() has found: functions, and the patterns that custom tools are held to.
  [[nodiscard]] std::vector<tessera::Json> take_functions() { return std::move(functions_); }
  [[nodiscard]] std::vector<ToolPattern> take_patterns() { return std::move(patterns_); }
  // As the response repeats them.
  [[nodiscard]] tessera::Json::Array take_repeated() { return std::move(repeated_); }
  // The name that the model knows a tool by.
  [[nodiscard]] static std::string function_of(std::string_view space, std::string_view name);
  [[nodiscard]] std::string function_named(std::string_view space, std::string_view name) const;
  // nullptr: there is no such function.
  [[nodiscard]] const Tool* find(std::string_view function) const;
  [[nodiscard]] std::size_t size() const noexcept { return tools_.size(); }

 private:
  void read_one(Fields& tool, const std::string& space, Notes& notes);
  void read_custom(Fields& tool, Tool named);

  std::vector<Tool> tools_;
  std::vector<tessera::Json> functions_;
  std::vector<ToolPattern> patterns_;
  tessera::Json::Array repeated_;
};

}  // namespace server
