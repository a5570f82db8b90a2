// Helpers that compose a grammar from smaller ones. Composing a grammar can fail. The helpers throw the error, and the function that
// makes the whole grammar catches it and returns it, so that not every step must check a Result.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/grammar/grammar.hpp>

namespace tessera::calls {

struct Refusal {
  Error error;
};

template <class T>
T must(Result<T> result) {
  if (!result) throw Refusal{std::move(result).error()};
  return *std::move(result);
}

// Composes grammars one after the other.
class Sequence {
 public:
  Sequence& text(std::string_view literal) {
    if (!literal.empty()) parts_.push_back(must(Grammar::literal(literal)));
    return *this;
  }
  Sequence& pattern(std::string_view regex) { return part(must(Grammar::regex(regex))); }
  Sequence& part(Grammar grammar) {
    parts_.push_back(std::move(grammar));
    return *this;
  }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  [[nodiscard]] Grammar done() const { return must(parts_.empty() ? Grammar::regex("") : Grammar::sequence(parts_)); }

 private:
  std::vector<Grammar> parts_;
};

inline Grammar any_of(const std::vector<Grammar>& grammars) {
  return grammars.size() == 1 ? grammars[0] : must(Grammar::alternatives(grammars));
}
inline Grammar any_text_of(const std::vector<std::string>& texts) { return must(Grammar::choice(texts)); }
inline Grammar optional(const Grammar& grammar) { return must(Grammar::repeat(grammar, 0, 1)); }

inline constexpr std::string_view kSpace = "[ \\n]{0,2}";  // limited, because a model might write white space without end

}  // namespace tessera::calls
