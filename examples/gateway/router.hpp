// Chooses the model for a question: by rules, then by a classifier, then by default.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "classifier.hpp"
#include "pattern.hpp"
#include "question.hpp"

namespace gateway {

// small, large: this model. adaptive: the small model first, and the large one if the small one's answer is uncertain.
enum class Route { small, large, adaptive };
[[nodiscard]] const char* to_string(Route route) noexcept;
[[nodiscard]] std::optional<Route> parse_route(std::string_view text) noexcept;

// A rule holds if all conditions that it states hold.
struct Rule {
  std::string name;
  Route route = Route::large;
  std::optional<Pattern> regex{};
  std::vector<std::string> keywords{};         // one of them is in the text, in any case of letters
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
  // `easy`: the route of questions that the classifier takes for easy.
  explicit Router(std::vector<Rule> rules = {}, std::optional<Classifier> classifier = {}, Route easy = Route::adaptive, Route otherwise = Route::large)
      : rules_(std::move(rules)), classifier_(std::move(classifier)), easy_(easy), otherwise_(otherwise) {}

  // `vector`: gives the question's vector when it is needed; an empty one leaves the classifier out.
  [[nodiscard]] Decision route(const Question& question, const std::function<std::span<const float>()>& vector) const;

 private:
  std::vector<Rule> rules_;
  std::optional<Classifier> classifier_;
  Route easy_, otherwise_;
};

// Reads {"rules": [{"name": ..., "tier": "small", "regex": ..., "keywords": [...], "longer": N, "shorter": N, "turns": N, "tools": true}]}.
// Throws Failure.
[[nodiscard]] std::vector<Rule> parse_rules(std::string_view text);
[[nodiscard]] std::vector<Rule> read_rules(const std::string& path);

}  // namespace gateway
