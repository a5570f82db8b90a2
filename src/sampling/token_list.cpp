#include "sampling/token_list.hpp"

#include <algorithm>

#include "support/error.hpp"

namespace tessera::sampling {

Result<TokenList> TokenList::make(Kind kind, std::span<const Token> tokens) noexcept {
  return tessera::detail::guard([&]() -> Result<TokenList> {
    TokenList made;
    made.kind_ = kind;
    made.tokens_.assign(tokens.begin(), tokens.end());
    std::sort(made.tokens_.begin(), made.tokens_.end());
    made.tokens_.erase(std::unique(made.tokens_.begin(), made.tokens_.end()), made.tokens_.end());
    if (!made.tokens_.empty() && made.tokens_.front() < 0) {
      return tessera::detail::make_error(ErrorCode::invalid_argument, "token list: no token is negative, as {} is",
                                         made.tokens_.front());
    }
    return made;
  });
}

void TokenList::operator()(Candidates& candidates, const Context&) const noexcept {
  const auto marks = candidates.counts();
  const auto mark = [&](std::uint32_t value) {
    for (const Token token : tokens_) {
      if (static_cast<std::size_t>(token) >= marks.size()) break;
      marks[static_cast<std::size_t>(token)] = value;
    }
  };
  mark(1);
  candidates.remove_if([&](const Candidate& candidate) {
    const bool listed = marks[static_cast<std::uint32_t>(candidate.token)] != 0;
    return listed == (kind_ == Kind::deny);
  });
  mark(0);
}

}  // namespace tessera::sampling
