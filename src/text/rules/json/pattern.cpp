#include "text/rules/json/pattern.hpp"

namespace tessera::detail {

Result<Regex> read_pattern(const RuleReader& rule, std::string_view key) {
  const Json* value = rule.json().find(key);
  if (value != nullptr && value->string() != nullptr) return Regex::literal(*value->string());
  TESSERA_TRY(const RuleReader pattern, rule.rule(key));
  if (pattern.has("String")) {
    TESSERA_TRY(const std::string_view text, pattern.text("String"));
    return Regex::literal(text);
  }
  TESSERA_TRY(const std::string_view text, pattern.text("Regex"));
  Result<Regex> made = Regex::compile(text);
  if (made || made.error().code() == ErrorCode::out_of_memory) return made;
  return rule.error(made.error().code(), key, "{}", made.error().message());
}

}  // namespace tessera::detail
