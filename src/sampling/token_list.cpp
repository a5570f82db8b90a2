#include "sampling/token_list.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::sampling {
namespace {

// If `listed` is true: keeps only the candidates that are in `tokens`. If false: keeps only the candidates that are not in `tokens`. The
// order stays. Tokens that are not in the vocabulary are ignored.
void keep_if(bool listed, Candidates& candidates, std::span<const Token> tokens) noexcept {
  const auto marks = candidates.counts();
  const auto mark = [&](std::uint32_t value) {
    for (const Token token : tokens) {
      if (token >= 0 && static_cast<std::size_t>(token) < marks.size()) marks[static_cast<std::size_t>(token)] = value;
    }
  };
  mark(1);
  candidates.remove_if([&](const Candidate& candidate) {
    return (marks[static_cast<std::uint32_t>(candidate.token)] != 0) != listed;
  });
  mark(0);
}

}  // namespace

void remove_tokens(Candidates& candidates, std::span<const Token> tokens) noexcept { keep_if(false, candidates, tokens); }

Result<TokenList> TokenList::make(Kind kind, std::span<const Token> tokens) noexcept {
  return tessera::detail::guard([&]() -> Result<TokenList> {
    TokenList made;
    made.kind_ = kind;
    made.tokens_.assign(tokens.begin(), tokens.end());
    std::sort(made.tokens_.begin(), made.tokens_.end());
    made.tokens_.erase(std::unique(made.tokens_.begin(), made.tokens_.end()), made.tokens_.end());
    if (!made.tokens_.empty() && made.tokens_.front() < 0) {
      return tessera::detail::make_error(ErrorCode::invalid_argument, "token list: {} is negative, which no token is",
                                         made.tokens_.front());
    }
    return made;
  });
}

void TokenList::operator()(Candidates& candidates, const Context&) const noexcept {
  keep_if(kind_ == Kind::allow, candidates, tokens_);
}

}  // namespace tessera::sampling
