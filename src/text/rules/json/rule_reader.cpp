#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

Result<std::string_view> RuleReader::text(std::string_view key) const {
  if (!has(key)) return error(ErrorCode::corrupt_file, key, "is missing: a string should be here");
  return text_or(key, {});
}

Result<std::string_view> RuleReader::text_or(std::string_view key, std::string_view absent) const {
  if (!has(key)) return absent;
  const std::string* value = json_->find(key)->string();
  if (value == nullptr) return error(ErrorCode::corrupt_file, key, "should be a string");
  return std::string_view(*value);
}

Result<bool> RuleReader::boolean_or(std::string_view key, bool absent) const {
  if (!has(key)) return absent;
  const bool* value = json_->find(key)->boolean();
  if (value == nullptr) return error(ErrorCode::corrupt_file, key, "should be true or false");
  return *value;
}

Result<std::uint64_t> RuleReader::size_or(std::string_view key, std::uint64_t absent) const {
  if (!has(key)) return absent;
  const std::int64_t* value = json_->find(key)->integer();
  if (value == nullptr || *value < 0) return error(ErrorCode::corrupt_file, key, "should be an integer that is not negative");
  return static_cast<std::uint64_t>(*value);
}

Result<std::vector<RuleReader>> RuleReader::list(std::string_view key) const {
  const Json* value = json_->find(key);
  if (value == nullptr || value->elements() == nullptr) return error(ErrorCode::corrupt_file, key, "should be a list");
  std::vector<RuleReader> rules;
  rules.reserve(value->elements()->size());
  for (const Json& element : *value->elements()) {
    rules.emplace_back(element, fmt::format("{}{}{}[{}]", path_, path_.empty() ? "" : ".", key, rules.size()));
  }
  return rules;
}

Result<RuleReader> RuleReader::rule(std::string_view key) const {
  const Json* value = json_->find(key);
  if (value == nullptr || value->members() == nullptr) return error(ErrorCode::corrupt_file, key, "should be an object");
  return RuleReader(*value, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

}  // namespace tessera::detail
