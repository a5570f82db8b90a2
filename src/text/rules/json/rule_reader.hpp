// Reads one rule of a tokenizer.json, such as {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": false}. Errors
// name the rule's place: "tokenizer.json: pre_tokenizer.pretokenizers[1].behavior: ...".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::detail {

class RuleReader {
 public:
  RuleReader() noexcept = default;  // an empty object, which can only be assigned to
  // `path`: the rule's place in the file ("pre_tokenizer").
  RuleReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  [[nodiscard]] const Json& json() const noexcept { return *json_; }
  [[nodiscard]] bool has(std::string_view key) const noexcept {
    const Json* value = json_->find(key);
    return value != nullptr && !value->is_null();
  }
  // Returns the value of "type". Error: corrupt_file, the rule is not an object or has no type.
  [[nodiscard]] Result<std::string_view> type() const { return text("type"); }

  // Return the value of a key. If the rule does not have the key, functions with `absent` return `absent`, the others corrupt_file. If the
  // value is of another type, all return corrupt_file. null counts as absent.
  [[nodiscard]] Result<std::string_view> text(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> text_or(std::string_view key, std::string_view absent) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool absent) const;
  [[nodiscard]] Result<std::uint64_t> size_or(std::string_view key, std::uint64_t absent) const;
  [[nodiscard]] Result<std::vector<RuleReader>> list(std::string_view key) const;
  [[nodiscard]] Result<RuleReader> rule(std::string_view key) const;  // an object

  template <class... Args>
  [[nodiscard]] Error error(ErrorCode code, std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    std::string place = "tokenizer.json: " + path_;
    if (!key.empty()) place.append(path_.empty() ? "" : ".").append(key);
    return error_at(code, place, format, std::forward<Args>(args)...);
  }
  // Returns the error for an unknown type or another unknown choice. `known`: the known choices.
  [[nodiscard]] Error unknown(std::string_view key, std::string_view value, std::string_view known) const {
    return error(ErrorCode::unsupported, key, "\"{}\" is not supported; tessera has {}", printable(value), known);
  }

 private:
  const Json* json_ = nullptr;
  std::string path_;
};

}  // namespace tessera::detail
