// Allow and deny lists: masks over the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

void remove_tokens(Candidates& candidates, std::span<const Token> tokens) noexcept;

// Keeps only the listed tokens (allow), or all others (deny). Order unchanged. If no candidate is left, the draw returns an error.
class TokenList {
 public:
  static constexpr std::string_view kName = "token list";
  enum class Kind : std::int32_t { allow = 0, deny = 1 };

  [[nodiscard]] static Result<TokenList> make(Kind kind, std::span<const Token> tokens) noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;

 private:
  Kind kind_ = Kind::deny;
  std::vector<Token> tokens_;  // ascending, each once
};

}  // namespace tessera::sampling
