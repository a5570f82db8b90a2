// Drafters that use a part of the target (the generating model) itself: its draft heads, or its first layers.
#include <tessera/decoding/drafters.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/seconds.hpp"
#include "decoding/drafters/check_engine.hpp"
#include "decoding/drafters/head_tree.hpp"
#include "decoding/drafters/level_tree.hpp"
#include "decoding/drafters/sampled_drafts.hpp"

namespace tessera {
namespace {

class TargetDrafter : public Drafter {
 public:
  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) final {
    return guess_each(context, out.size(), [&, n = std::size_t{0}](Token draft) mutable {
      out[n++] = draft;
      return n;
    });
  }

  Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) final {
    if (most_guesses(context) != kAnyNumber) {  // heads with a fixed number of guesses do not read drafts
      detail::LevelTree tree(out, std::max<std::size_t>(1, context.branches));
      const auto guessed = guess_each(context, out.size(), [&](Token draft) {
        tree.add_level(draft, logits_);
        return tree.levels();
      });
      return guessed ? Result<std::size_t>(tree.grow()) : guessed;
    }
    detail::HeadTree tree(out, std::max<std::size_t>(1, context.branches));
    TESSERA_TRY(const std::size_t guessed, guess_each(context, out.size(), [&](Token draft) {
                  tree.add(draft, logits_);
                  tree.add_likely_leaves();
                  // guess_each() ends when the number of drafts reaches its limit.
                  return tree.size();
                }));
    if (guessed != 0) tree.add_other_leaves();
    return tree.size();
  }

  [[nodiscard]] double cost(std::size_t n) const noexcept final { return static_cast<double>(n) * seconds_; }

 protected:
  static constexpr std::size_t kAnyNumber = ~std::size_t{0};

 private:
  // Makes drafts one after another: guesses the next token's logits, draws a draft from the logits, and calls take(draft). `take` returns
  // how many drafts there are then (it may add several, as a tree does). Ends when there are `most` drafts, or when no guess can be made.
  // Returns the number of guesses.
  template <class Take>
  Result<std::size_t> guess_each(const DraftContext& context, std::size_t most, Take take) {
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t vocab = context.target.engine().spec().vocab_size, most_here = std::min(most, most_guesses(context));
    logits_.resize(vocab);
    history_.reserve(context.history.size() + most_here);
    history_.assign(context.history.begin(), context.history.end());
    detail::SampledDrafts drafts(context, vocab, room_);
    TESSERA_TRY(std::optional<TargetGuesses> guesses, guess(context, most_here));
    if (!guesses) return std::size_t{0};
    std::size_t n = 0, drafted = 0;
    while (n < most_here && drafted < most) {
      TESSERA_TRY_STATUS(guesses->next(history_.back(), logits_, context.stop));
      auto draft = drafts.draw(logits_, history_);
      // A head may guess only some tokens of the vocabulary. If the request's grammar allows none of these tokens, drafting ends.
      const auto is_nan = [](float logit) { return std::isnan(logit); };
      if (!draft && draft.error().code() == ErrorCode::numeric && std::ranges::none_of(logits_, is_nan)) break;
      if (!draft) return std::move(draft).error();
      history_.push_back(*draft);
      drafted = take(*draft);
      ++n;
    }
    seconds_ = detail::seconds_since(begin) / static_cast<double>(std::max<std::size_t>(1, drafted));
    return n;
  }

  // Returns the limit of consecutive guesses.
  [[nodiscard]] virtual std::size_t most_guesses(const DraftContext&) const noexcept { return kAnyNumber; }
  // Begins a series of up to `most` guesses. Returns nullopt if no guesses can be made now.
  virtual Result<std::optional<TargetGuesses>> guess(const DraftContext& context, std::size_t most) = 0;

  double seconds_ = 0.0;  // measured seconds for one draft; 0: not measured yet
  std::vector<float> logits_, room_;
  std::vector<Token> history_;  // the sequence, then the drafts made so far
};

class HeadDrafter final : public TargetDrafter {
 public:
  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    const ModelSpec& spec = target.spec();
    if (!spec.has_draft_heads()) {
      return spec.n_left_out == 0
                 ? detail::make_error(ErrorCode::invalid_argument,
                                      "the model's file has no MTP head, and no draft heads are loaded (EngineOptions::draft_heads); choose another drafter")
                 : detail::make_error(ErrorCode::invalid_argument,
                                      "the model's MTP head is not loaded; load the engine with EngineOptions::mtp = MtpHeads::load");
    }
    return std::unique_ptr<Drafter>(std::make_unique<HeadDrafter>());
  }

 private:
  Result<std::optional<TargetGuesses>> guess(const DraftContext& context, std::size_t most) override {
    // The heads need the hidden state of the last token but one. If several tokens are pending, that state is not computed before the
    // coming step, so no guess is made (nullopt).
    const std::size_t computed = context.target.computed();
    if (computed == 0 || context.history.size() != computed + 1) return std::optional<TargetGuesses>();
    hidden_.resize(context.target.engine().spec().d_model);
    auto guesses = context.target.guess_by_heads(most, hidden_);
    // If there are no pages, no drafts are made this time.
    if (!guesses && guesses.error().code() == ErrorCode::cache_full) return std::optional<TargetGuesses>();
    if (!guesses) return std::move(guesses).error();
    return std::optional<TargetGuesses>(*guesses);
  }

  [[nodiscard]] std::size_t most_guesses(const DraftContext& context) const noexcept override {
    const std::uint32_t most = context.target.engine().spec().draft_heads.most_guesses;
    return most == 0 ? kAnyNumber : most;
  }

  std::vector<float> hidden_;
};

class EarlyExitDrafter final : public TargetDrafter {
 public:
  explicit EarlyExitDrafter(std::uint32_t layers) noexcept : layers_(layers) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(DraftTarget::check_layers(target, layers_));
    return std::unique_ptr<Drafter>(std::make_unique<EarlyExitDrafter>(layers_));
  }

 private:
  Result<std::optional<TargetGuesses>> guess(const DraftContext& context, std::size_t) override {
    TESSERA_TRY(const TargetGuesses guesses, context.target.guess_by_layers(layers_));
    return std::optional<TargetGuesses>(guesses);
  }

  std::uint32_t layers_;
};

}  // namespace

Result<std::shared_ptr<const Drafter>> head_drafter() noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    return std::shared_ptr<const Drafter>(std::make_shared<HeadDrafter>());
  });
}

Result<std::shared_ptr<const Drafter>> early_exit_drafter(std::uint32_t layers) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    return std::shared_ptr<const Drafter>(std::make_shared<EarlyExitDrafter>(layers));
  });
}

}  // namespace tessera
