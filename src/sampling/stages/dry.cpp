#include "sampling/stages/dry.hpp"

#include <algorithm>

#include "core/math.hpp"
#include "sampling/counted.hpp"
#include "sampling/range.hpp"

namespace tessera::sampling {

Result<Dry> Dry::make(const DryOptions& options) noexcept {
  TESSERA_TRY_STATUS(detail::require(options.multiplier >= 0.0f && detail::finite(options.multiplier), "DRY multiplier",
                                     options.multiplier, "a number of at least 0"));
  TESSERA_TRY_STATUS(
      detail::require(options.base >= 1.0f && detail::finite(options.base), "DRY base", options.base,
                      "a number of at least 1"));
  return tessera::detail::guard([&]() -> Result<Dry> {
    Dry made;
    made.options_ = options;
    made.options_.breakers = {};
    made.breakers_.assign(options.breakers.begin(), options.breakers.end());
    std::sort(made.breakers_.begin(), made.breakers_.end());
    return made;
  });
}

Status Dry::operator()(Candidates& candidates, const Context& context) {
  const auto recent = last_counted(context, options_.counted, options_.last_n);
  const std::size_t n = recent.size();
  if (options_.multiplier == 0.0f) return {};
  if (match_.size() < n || match_.empty()) match_.resize(std::max<std::size_t>(2 * n, 1024));
  if (n < 2) return {};
  const auto back = [&](std::size_t i) { return recent[n - 1 - i]; };  // the history read backwards
  const auto breaks = [&](Token token) { return std::binary_search(breakers_.begin(), breakers_.end(), token); };

  const std::size_t shortest = std::max<std::size_t>(options_.allowed_length, 1);
  std::size_t longest = 0;  // a repeat ends before the first breaker
  while (longest < n && !breaks(back(longest))) ++longest;
  if (longest < shortest) return {};

  // match_[i]: length of the repeat that ends i tokens before the end of the history, compared with the end itself: how many tokens are
  // equal, back(0) to back(i), back(1) to back(i + 1), and so on. This is the Z-array of the history read backwards.
  const auto counts = candidates.counts();  // [token]: the longest repeat that the token would continue
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t length = i < right ? std::min<std::size_t>(right - i, match_[i - left]) : 0;
    while (i + length < n && back(length) == back(i + length)) ++length;
    match_[i] = static_cast<std::uint32_t>(length);
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    const auto next = static_cast<std::uint32_t>(back(i - 1));
    const std::size_t repeat = std::min(length, longest);
    if (repeat < shortest || next >= counts.size() || breaks(back(i - 1))) continue;
    counts[next] = std::max(counts[next], static_cast<std::uint32_t>(repeat));
  }
  const auto tokens = candidates.tokens();
  const auto logits = candidates.change_logits();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::uint32_t count = counts[static_cast<std::uint32_t>(tokens[i])];
    if (count == 0 || !detail::finite(logits[i])) continue;
    const double excess = static_cast<double>(count - options_.allowed_length);
    const double growth = math::pow(static_cast<double>(options_.base), excess);
    const double penalty = static_cast<double>(options_.multiplier) * growth;
    logits[i] = static_cast<float>(static_cast<double>(logits[i]) - penalty);
  }
  for (const Token token : recent) {
    if (static_cast<std::uint32_t>(token) < counts.size()) counts[static_cast<std::uint32_t>(token)] = 0;
  }
  return {};
}

}  // namespace tessera::sampling
