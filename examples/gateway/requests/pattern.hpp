// A regular expression (PCRE2), with a function that searches for it in a text. Upper and lower case are alike. The work is limited: a
// search that takes too long counts as "not found".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace gateway {

class Pattern {
 public:
  // Throws Failure (invalid_argument) that says where the expression is wrong.
  explicit Pattern(const std::string& expression);
  // Returns whether the expression matches somewhere in the text. nullopt: the search took too long, or there was not enough memory.
  [[nodiscard]] std::optional<bool> is_in(std::string_view text) const;

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace gateway
