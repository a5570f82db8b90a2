// Lookahead: the model also computes the rows of wrong drafts, and the token that it finds likeliest behind a wrong draft is right
// for a later position more often than chance. Steps follow each other like this (* is wrong):
//
//   text so far   the cat          drafts   sat  *in   *a    *hat      guesses behind them   on   the  box  in
//   text so far   the cat sat on   drafts   the  box   in    ...
//
// The guesses behind the first wrong draft are the next drafts. n-grams go into the pool along the diagonal: each token of an n-gram
// was guessed one step later than the token before it, with that token as its draft.
#include <tessera/decoding/drafters.hpp>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "decoding/drafters/check_engine.hpp"

namespace tessera {
namespace {

constexpr std::size_t kMostOfPool = 1 << 16;  // entries of the pool; then it is emptied

class LookaheadDrafter final : public Drafter {
 public:
  explicit LookaheadDrafter(const LookaheadOptions& options) noexcept : options_(options) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    return std::unique_ptr<Drafter>(std::make_unique<LookaheadDrafter>(options_));
  }
  [[nodiscard]] bool wants_guesses() const noexcept override { return true; }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    const std::span<const Token> history = context.history;
    if (history.empty()) return std::size_t{0};
    std::size_t n = 0;
    for (Token last = history.back(); n < out.size(); last = out[n - 1]) {
      const auto found = pool_.find(last);
      if (found == pool_.end()) break;
      for (const Token token : found->second) {
        if (n < out.size()) out[n++] = token;
      }
    }
    // If the pool has nothing: the tokens guessed for these positions. Without guesses, to begin with: any tokens of the text.
    for (; n < out.size(); ++n) {
      out[n] = n < guesses_.size() ? guesses_[n] : history[n * 7 % history.size()];
    }
    begin_ = history.size();
    return n;
  }

  void observe(const DraftOutcome& outcome) override {
    guesses_.clear();
    if (outcome.added == outcome.history.size()) diagonal_.clear();  // the positions have changed
    if (outcome.guesses.empty()) return;
    // The guess behind draft i is for position begin_ + i + 1.
    diagonal_.insert(diagonal_.begin(), Guesses{.begin = begin_ + 1, .tokens = {outcome.guesses.begin(), outcome.guesses.end()}});
    if (diagonal_.size() > options_.ngram) diagonal_.pop_back();
    if (diagonal_.size() == options_.ngram) pool_ngrams();
    const std::size_t first = std::min(outcome.accepted, outcome.guesses.size());
    guesses_.assign(outcome.guesses.begin() + static_cast<std::ptrdiff_t>(first), outcome.guesses.end());
  }

 private:
  struct Guesses {
    std::size_t begin;  // position of the first token
    std::vector<Token> tokens;
    [[nodiscard]] bool has(std::size_t position) const noexcept { return position >= begin && position - begin < tokens.size(); }
  };

  // Adds to the pool an n-gram that ends at each position of the latest guesses.
  void pool_ngrams() {
    const Guesses& latest = diagonal_.front();
    for (std::size_t i = 0; i < latest.tokens.size(); ++i) {
      const std::size_t position = latest.begin + i;
      std::vector<Token> ngram(options_.ngram);
      std::size_t back = 0;
      for (; back < options_.ngram && position >= back && diagonal_[back].has(position - back); ++back) {
        ngram[options_.ngram - 1 - back] = diagonal_[back].tokens[position - back - diagonal_[back].begin];
      }
      if (back < options_.ngram) continue;
      if (pool_.size() > kMostOfPool) pool_.clear();
      pool_[ngram.front()].assign(ngram.begin() + 1, ngram.end());
    }
  }

  LookaheadOptions options_;
  std::size_t begin_ = 0;            // position of the first draft
  std::vector<Token> guesses_;       // for the positions that follow the history
  std::vector<Guesses> diagonal_;    // guesses of the last steps, the latest first; at most `ngram`
  std::unordered_map<Token, std::vector<Token>> pool_;  // by token: the tokens that followed it last
};

}  // namespace

Result<std::shared_ptr<const Drafter>> lookahead_drafter(const LookaheadOptions& options) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    if (options.ngram < 2 || options.ngram > 16) {
      return detail::make_error(ErrorCode::invalid_argument, "n-grams of {} tokens; choose 2 to 16", options.ngram);
    }
    return std::shared_ptr<const Drafter>(std::make_shared<LookaheadDrafter>(options));
  });
}

}  // namespace tessera
