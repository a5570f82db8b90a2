#include "tiers/router.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "failure.hpp"
#include "requests/values.hpp"
#include "system/program.hpp"

namespace gateway {

using tessera::ErrorCode;
using tessera::Json;

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

bool holds(const Rule& rule, const Question& question, const std::string& lowered) {
  if (rule.tools && *rule.tools != question.has_tools) return false;
  if (rule.turns && question.turns <= *rule.turns) return false;
  if (rule.longer && question.text.size() <= *rule.longer) return false;
  if (rule.shorter && question.text.size() >= *rule.shorter) return false;
  const auto is_in = [&](const std::string& word) { return lowered.find(word) != std::string::npos; };
  if (!rule.keywords.empty() && std::ranges::none_of(rule.keywords, is_in)) return false;
  return !rule.regex || rule.regex->is_in(question.text).value_or(false);
}

Rule parse_rule(const Json& json, const std::string& where) {
  const auto wrong = [&](const std::string& why) { return Failure(ErrorCode::invalid_argument, fmt::format("{}: {}", where, why)); };
  if (json.members() == nullptr) throw wrong("must be an object");
  Rule rule{.name = where};
  bool has_tier = false;
  for (const auto& [key, value] : *json.members()) {
    const auto count = [&, &key = key, &value = value] {
      if (value.integer() == nullptr || *value.integer() < 0) throw wrong(fmt::format("{} must be a number of 0 or more", key));
      return static_cast<std::size_t>(*value.integer());
    };
    const auto text = [&, &key = key, &value = value] {
      if (value.string() == nullptr) throw wrong(fmt::format("{} must be a text", key));
      return *value.string();
    };
    if (key == "name") {
      rule.name = text();
    } else if (key == "tier") {
      const auto route = parse_route(text());
      if (!route) throw wrong("tier must be small, large or adaptive");
      rule.route = *route;
      has_tier = true;
    } else if (key == "regex") {
      rule.regex.emplace(text());
    } else if (key == "keywords") {
      if (value.elements() == nullptr) throw wrong("keywords must be a list of texts");
      for (const Json& word : *value.elements()) {
        if (word.string() == nullptr) throw wrong("keywords must be a list of texts");
        rule.keywords.push_back(lower(*word.string()));
      }
    } else if (key == "longer") {
      rule.longer = count();
    } else if (key == "shorter") {
      rule.shorter = count();
    } else if (key == "turns") {
      rule.turns = count();
    } else if (key == "tools") {
      if (value.boolean() == nullptr) throw wrong("tools must be true or false");
      rule.tools = *value.boolean();
    } else {
      throw wrong(fmt::format("there is no member \"{}\"; there are name, tier, regex, keywords, longer, shorter, turns, tools", key));
    }
  }
  if (!has_tier) throw wrong("state a tier: small, large or adaptive");
  return rule;
}

}  // namespace

const char* to_string(Route route) noexcept { return route == Route::small ? "small" : route == Route::large ? "large" : "adaptive"; }

std::optional<Route> parse_route(std::string_view text) noexcept {
  for (const Route route : {Route::small, Route::large, Route::adaptive}) {
    if (text == to_string(route)) return route;
  }
  return std::nullopt;
}

Decision Router::route(const Question& question, const std::function<std::span<const float>()>& vector) const {
  const std::string lowered = lower(question.text);
  for (const Rule& rule : rules_) {
    if (holds(rule, question, lowered)) return {rule.route, "rule:" + rule.name};
  }
  if (classifier_) {
    const std::span<const float> values = vector();
    if (!values.empty()) return {classifier_->difficulty(values) >= classifier_->threshold() ? Route::large : easy_, "classifier"};
  }
  return {otherwise_, "default"};
}

std::vector<Rule> parse_rules(std::string_view text) {
  const Json json = value(Json::parse(text));
  const Json* list = json.find("rules");
  if (list == nullptr || list->elements() == nullptr) throw Failure(ErrorCode::invalid_argument, "there must be a member \"rules\" that is a list");
  std::vector<Rule> rules;
  for (const Json& each : *list->elements()) rules.push_back(parse_rule(each, fmt::format("rules[{}]", rules.size())));
  return rules;
}

std::vector<Rule> read_rules(const std::string& path) {
  std::ifstream file(tessera::tool::path_of(path), std::ios::binary);
  if (!file) throw Failure(ErrorCode::not_found, fmt::format("cannot read {}", path));
  try {
    return parse_rules(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const Failure& failure) {
    throw Failure(failure.code, fmt::format("{}: {}", path, failure.what()));
  }
}

}  // namespace gateway
