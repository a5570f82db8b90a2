// Lookahead: drafts that are the model's own guesses. A step computes the rows of all its drafts, including wrong drafts. The model's
// likeliest token after a draft is a guess for the next position. Even after a wrong draft, such a guess is right more often than by
// chance. So the guesses from the first wrong draft on become the next step's drafts. Example (* marks wrong drafts):
//
//   step 1   text so far   the cat          drafts                    sat  *in   *a   *hat
//                                           guesses behind them       on   the   box  in
//   step 2   text so far   the cat sat on   drafts                    the  box   in   ...
//
// N-grams are better than single guesses, so they are kept in a pool and used first. An n-gram consists of guesses of n successive steps,
// one guess from each step, for successive positions: each token of the n-gram was the draft after which the next token was guessed.
#include <tessera/decoding/drafters.hpp>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "decoding/drafters/check_engine.hpp"

namespace tessera {
namespace {

constexpr std::size_t kMostOfPool = 1 << 16;  // a pool with more entries is cleared

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
    // Positions for which the pool has no n-gram get the guessed token of their position as a draft. At the beginning there are no guesses
    // either: then any tokens of the text are used, because even wrong drafts lead to guesses.
    for (; n < out.size(); ++n) {
      out[n] = n < guesses_.size() ? guesses_[n] : history[n * 7 % history.size()];
    }
    begin_ = history.size();
    return n;
  }

  void observe(const DraftOutcome& outcome) override {
    guesses_.clear();
    if (outcome.added == outcome.history.size()) diagonal_.clear();  // all tokens are new: older guesses belong to other positions
    if (outcome.guesses.empty()) return;
    // The draft at position p gives a guess for position p + 1.
    diagonal_.insert(diagonal_.begin(), Guesses{.begin = begin_ + 1, .tokens = {outcome.guesses.begin(), outcome.guesses.end()}});
    if (diagonal_.size() > options_.ngram) diagonal_.pop_back();
    if (diagonal_.size() == options_.ngram) pool_ngrams();
    const std::size_t first = std::min(outcome.accepted, outcome.guesses.size());
    guesses_.assign(outcome.guesses.begin() + static_cast<std::ptrdiff_t>(first), outcome.guesses.end());
  }

 private:
  struct Guesses {
    std::size_t begin;  // position of tokens[0]
    std::vector<Token> tokens;
    [[nodiscard]] bool has(std::size_t position) const noexcept { return position >= begin && position - begin < tokens.size(); }
  };

  // Adds to the pool, for each position of the latest guesses, the n-gram that ends at this position. It has one guess from each of the
  // last LookaheadOptions::ngram steps. Leaves out an n-gram if one of these steps has no guess for its position.
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
  std::vector<Token> guesses_;       // guesses for the positions after the history
  std::vector<Guesses> diagonal_;    // guesses of the last steps, latest step first; at most `ngram` steps
  // key: first token of an n-gram. value: the other tokens of the newest n-gram that begins with the key.
  std::unordered_map<Token, std::vector<Token>> pool_;
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
