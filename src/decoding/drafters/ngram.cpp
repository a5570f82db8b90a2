#include <algorithm>

#include <tessera/decoding/drafters.hpp>

#include "core/error.hpp"
#include "decoding/drafters/check_engine.hpp"

namespace tessera {
namespace {

constexpr std::size_t kLongest = 64;  // limit of NgramOptions::longest, because n-grams are compared at each position of the history

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const NgramOptions& options) noexcept : options_(options) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    return std::unique_ptr<Drafter>(std::make_unique<NgramDrafter>(options_));
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    const std::span<const Token> history = context.history;
    std::size_t longest = options_.shortest - 1, follows = 0;
    for (std::size_t end = history.size() - 1; end >= options_.shortest && longest < options_.longest; --end) {
      const std::size_t most = std::min(end, options_.longest);
      std::size_t same = 0;
      while (same < most && history[end - 1 - same] == history[history.size() - 1 - same]) ++same;
      if (same <= longest) continue;
      longest = same;
      follows = end;
    }
    if (follows == 0) return std::size_t{0};
    // Copied tokens may reach the end of the history. Copying then continues with the drafts that were just made.
    for (std::size_t n = 0; n < out.size(); ++n) {
      const std::size_t from = follows + n;
      out[n] = from < history.size() ? history[from] : out[from - history.size()];
    }
    return out.size();
  }

 private:
  NgramOptions options_;
};

}  // namespace

Result<std::shared_ptr<const Drafter>> ngram_drafter(const NgramOptions& options) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    if (options.shortest == 0 || options.shortest > options.longest || options.longest > kLongest) {
      return detail::make_error(ErrorCode::invalid_argument,
                                "n-grams of {} to {} tokens; the shortest is 1 or more and not above the longest, and that at most {}",
                                options.shortest, options.longest, kLongest);
    }
    return std::shared_ptr<const Drafter>(std::make_shared<NgramDrafter>(options));
  });
}

}  // namespace tessera
