// Turns the tools of OpenAI's Responses into functions for templates, and finds the tool of a function that the model calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fields/chat_fields.hpp"

namespace server {

class ResponseTools {
 public:
  struct Tool {
    std::string function{};  // the model's name for the tool
    std::string name{};    // the client's name for the tool
    std::string space{};   // the namespace of the tool
    bool is_custom = false;  // the tool gets a text, not arguments
  };

  // Reads a list of tools: functions, custom tools, and namespaces of both. Leaves out and notes other tools, which a service would run.
  void read(const tessera::Json::Array& list, const std::string& path, Notes& notes);

  // Move out the results of read(): the functions, and the patterns of custom tools.
  [[nodiscard]] std::vector<tessera::Json> take_functions() { return std::move(functions_); }
  [[nodiscard]] std::vector<ToolPattern> take_patterns() { return std::move(patterns_); }
  // Moves out the tools in the form in which the response repeats them.
  [[nodiscard]] tessera::Json::Array take_repeated() { return std::move(repeated_); }
  // Return the model's name for a tool. function_of() makes a name; function_named() finds the name of a tool in the list.
  [[nodiscard]] static std::string function_of(std::string_view space, std::string_view name);
  [[nodiscard]] std::string function_named(std::string_view space, std::string_view name) const;
  // Returns the tool of a function; nullptr if there is none.
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
