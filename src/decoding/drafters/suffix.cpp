#include <tessera/decoding/drafters.hpp>

#include "core/error.hpp"
#include "decoding/drafters/check_engine.hpp"
#include "decoding/drafters/suffix_automaton.hpp"

namespace tessera {
namespace {

class SuffixDrafter final : public Drafter {
 public:
  explicit SuffixDrafter(const SuffixOptions& options) : options_(options) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    return std::unique_ptr<Drafter>(std::make_unique<SuffixDrafter>(options_));
  }

  Result<std::size_t> propose(const DraftContext&, std::span<Token> out) override {
    return known_.guess(options_.shortest, options_.least, out);
  }

  Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) override {
    return known_.guess_tree(options_.shortest, options_.least, context.branches, out);
  }

  void observe(const DraftOutcome& outcome) override {
    if (outcome.added == outcome.history.size()) known_.clear();
    for (const Token token : outcome.history.last(outcome.added)) known_.push(token);
  }

 private:
  SuffixOptions options_;
  detail::SuffixAutomaton known_;  // has every substring of the sequence (suffix_automaton.hpp)
};

}  // namespace

Result<std::shared_ptr<const Drafter>> suffix_drafter(const SuffixOptions& options) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    if (options.shortest == 0 || !(options.least >= 0.0f && options.least <= 1.0f)) {
      return detail::make_error(ErrorCode::invalid_argument, "suffixes of {} tokens or more, and a least chance of {}; choose 1 or more, and 0 to 1",
                                options.shortest, options.least);
    }
    return std::shared_ptr<const Drafter>(std::make_shared<SuffixDrafter>(options));
  });
}

}  // namespace tessera
