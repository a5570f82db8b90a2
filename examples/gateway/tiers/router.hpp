// Chooses the model for a question: by rules, then by a classifier, then by default.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "requests/pattern.hpp"
#include "requests/question.hpp"
#include "tiers/classifier.hpp"

namespace gateway {

// small, large: this model answers. adaptive: the small model answers first, and the large model if the small model's answer is uncertain.
enum class Route { small, large, adaptive };
[[nodiscard]] const char* to_string(Route route) noexcept;
[[nodiscard]] std::optional<Route> parse_route(std::string_view text) noexcept;

// A rule holds if all conditions that it states hold.
struct Rule {
  std::string name;
  Route route = Route::large;
  std::optional<Pattern> regex{};
  std::vector<std::string> keywords{};         // the text contains one of them; upper and lower case are alike
  std::optional<std::size_t> longer{}, shorter{};  // the text has more, or fewer, bytes
  std::optional<std::size_t> turns{};          // the conversation has more user messages
  std::optional<bool> tools{};                 // the request has tools, or has none
};

struct Decision {
  Route route = Route::large;
  std::string why;  // "rule:NAME", "classifier", "default"
};

class Router {
 public:
  // `easy`: the route of questions that the classifier finds easy. `otherwise`: the route if no rule holds and the classifier is not used.
  explicit Router(std::vector<Rule> rules = {}, std::optional<Classifier> classifier = {}, Route easy = Route::adaptive, Route otherwise = Route::large)
      : rules_(std::move(rules)), classifier_(std::move(classifier)), easy_(easy), otherwise_(otherwise) {}

  // Returns the route of a question. `vector` computes the question's vector; it is called only if there is a classifier and no rule holds.
  // If the vector is empty, the classifier is not used.
  [[nodiscard]] Decision route(const Question& question, const std::function<std::span<const float>()>& vector) const;

 private:
  std::vector<Rule> rules_;
  std::optional<Classifier> classifier_;
  Route easy_, otherwise_;
};

// Read rules from JSON (a text, or a file), and return them in their order. The form, where all members but the tier may be absent:
//   {"rules": [{"name": ..., "tier": "small", "regex": ..., "keywords": [...], "longer": N, "shorter": N, "turns": N, "tools": true}]}
// "tier" is Rule::route; the other members are those of Rule. Throw Failure.
[[nodiscard]] std::vector<Rule> parse_rules(std::string_view text);
[[nodiscard]] std::vector<Rule> read_rules(const std::string& path);

}  // namespace gateway
