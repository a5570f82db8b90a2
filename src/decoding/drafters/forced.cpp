// Drafts the text that a grammar forces, for example a property's name in JSON. The forced text is encoded together with the text of the
// sequence's last token, so that the tokens are the same as in an unbroken text. Example:
//
//   last token          "
//   forced text          name":
//   encoded together    "name":     three tokens:  "  name  ":
//   drafts               name       The last forced token, ":, is left out: the model may write a longer token in its place.
#include <tessera/decoding/drafters.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "decoding/drafters/check_engine.hpp"

namespace tessera {
namespace {

class ForcedDrafter final : public Drafter {
 public:
  explicit ForcedDrafter(std::shared_ptr<const Drafter> otherwise) noexcept : model_(std::move(otherwise)) {}
  ForcedDrafter(Tokenizer tokenizer, std::unique_ptr<Drafter> otherwise) noexcept
      : tokenizer_(std::move(tokenizer)), otherwise_(std::move(otherwise)) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    std::unique_ptr<Drafter> otherwise;
    if (model_ != nullptr) {
      TESSERA_TRY(otherwise, model_->start(target));
    }
    return std::unique_ptr<Drafter>(std::make_unique<ForcedDrafter>(target.tokenizer(), std::move(otherwise)));
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    TESSERA_TRY(const std::vector<Token> forced, forced_tokens(context));
    if (!are_forced_) return otherwise_ != nullptr ? otherwise_->propose(context, out) : std::size_t{0};
    const std::size_t n = std::min(forced.size(), out.size());
    std::copy_n(forced.begin(), n, out.begin());
    return n;
  }
  Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) override {
    TESSERA_TRY(const std::vector<Token> forced, forced_tokens(context));
    if (!are_forced_) return otherwise_ != nullptr ? otherwise_->propose_tree(context, out) : std::size_t{0};
    const std::size_t n = std::min(forced.size(), out.size());
    for (std::size_t i = 0; i < n; ++i) out[i] = {.token = forced[i], .parent = i == 0 ? kNoDraft : i - 1};
    return n;
  }

  void observe(const DraftOutcome& outcome) override {
    if (otherwise_ == nullptr) return;
    // The other drafter always gets new text. It gets the outcome of drafts only if it made these drafts.
    if (are_forced_) otherwise_->observe({.history = outcome.history, .added = outcome.added});
    else otherwise_->observe(outcome);
  }
  [[nodiscard]] bool wants_guesses() const noexcept override { return otherwise_ != nullptr && otherwise_->wants_guesses(); }
  [[nodiscard]] double cost(std::size_t n) const noexcept override { return otherwise_ != nullptr ? otherwise_->cost(n) : 0.0; }

 private:
  // Returns the tokens of the forced text except the last, because the model may write a longer token in its place.
  [[nodiscard]] Result<std::vector<Token>> forced_tokens(const DraftContext& context) {
    are_forced_ = false;
    if (context.sampler == nullptr || tokenizer_.vocab_size() == 0) return std::vector<Token>();
    TESSERA_TRY(const std::string forced, context.sampler->forced());
    TESSERA_TRY(std::vector<Token> tokens, encoded(context.history, forced));
    if (!tokens.empty()) tokens.pop_back();
    are_forced_ = !tokens.empty();
    return tokens;
  }
  [[nodiscard]] Result<std::vector<Token>> encoded(std::span<const Token> history, const std::string& forced) const {
    if (forced.empty()) return std::vector<Token>();
    const std::string before(history.empty() ? std::string_view() : tokenizer_.piece(history.back()));
    TESSERA_TRY(std::vector<Token> tokens, tokenizer_.encode(before + forced, {.bos = Bos::never}));
    std::size_t at = 0, bytes = 0;
    while (at < tokens.size() && bytes < before.size()) bytes += tokenizer_.piece(tokens[at++]).size();
    // If the vocabulary adds a space at the beginning of a text, that space is in the first token but not in the text.
    const std::size_t in_front = tokenizer_.adds_space_prefix() ? 1 : 0;
    if (bytes == before.size() + in_front || bytes == before.size()) {
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at));
      return tokens;
    }
    return tokenizer_.encode(forced, {.bos = Bos::never});
  }

  std::shared_ptr<const Drafter> model_;  // makes the other drafter of each generation
  Tokenizer tokenizer_;
  std::unique_ptr<Drafter> otherwise_;
  bool are_forced_ = false;  // true: the last drafts came from a grammar and not from the other drafter
};

}  // namespace

Result<std::shared_ptr<const Drafter>> forced_drafter(std::shared_ptr<const Drafter> otherwise) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    return std::shared_ptr<const Drafter>(std::make_shared<ForcedDrafter>(std::move(otherwise)));
  });
}

}  // namespace tessera
