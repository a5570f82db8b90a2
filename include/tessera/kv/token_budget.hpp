// A token budget limits how many tokens of a sequence keep their keys and values: at most `tokens` between two calls. The other tokens are
// dropped, as Session::remove() removes tokens: later tokens move up, and the session is edited(). A dropped token is not computed again,
// and no later token sees it.
//
//   auto session = engine.session({.kv = {.budget = {.tokens = 256, .choice = TokenChoice::snapkv}}});
//
// In models with sliding windows there are two cases. If `recent` is below the longest window plus the tokens of a page, all layers hold
// the same tokens, up to the budget. Otherwise the budget limits only the layers without a window, and each layer with a window holds the
// tokens that its window sees.
//
// A drop leaves seven eighths of the budget (tokens_left()), so that the next drop is not due at the next token. A drop happens
//   - at the end of a prompt (an append(), a session's rows in a batch, the prompt of a scheduler's request) that is longer
//     than the budget: the prompt itself is computed in full, and needs its pages until then;
//   - where a sequence that grows token by token reaches the budget.
#pragma once

#include <cstdint>

namespace tessera {

// Says which tokens a drop keeps, in addition to the first `sinks` and the last `recent` tokens.
enum class TokenChoice : std::int32_t {
  window = 0,  // no further tokens: only the first `sinks` and the last `recent` tokens stay (StreamingLLM; Xiao et al. 2023)
  h2o = 1,     // tokens that have been attended to most so far (H2O; Zhang et al. 2023. Scissorhands; Liu et al. 2023)
  snapkv = 2,  // tokens that the last kAskingRows rows before the drop attend to most (SnapKV; Li et al. 2024)
};

struct TokenBudget {
  std::uint32_t tokens = 0;  // most tokens of a sequence that keep keys and values: at least kLeastTokenBudget, or 0: no budget
  TokenChoice choice = TokenChoice::window;
  std::uint32_t sinks = 4;   // first tokens that always stay
  // Last tokens that always stay. 0: half of tokens_left() with h2o, kAskingRows with snapkv. With TokenChoice::window this number has no
  // effect, because all kept tokens but the sinks are last tokens: tokens_left() - sinks of them.
  std::uint32_t recent = 0;
};

inline constexpr std::uint32_t kLeastTokenBudget = 128;
inline constexpr std::uint32_t kNoTokenBudget = ~std::uint32_t{0};
// For snapkv: the number of rows, the last ones before a drop, whose attention decides which tokens stay.
inline constexpr std::uint32_t kAskingRows = 32;
// For h2o: the attention of every 16th row of a sequence is counted (the other rows are not counted).
inline constexpr std::uint32_t kVotingEvery = 16;

// Returns the number of tokens that a drop leaves.
[[nodiscard]] constexpr std::uint64_t tokens_left(const TokenBudget& budget) noexcept {
  return budget.tokens - budget.tokens / 8;
}
// Returns whether the choice of tokens depends on what rows attend to, so that attention must be counted.
[[nodiscard]] constexpr bool counts_attention(const TokenBudget& budget) noexcept {
  return budget.tokens != 0 && budget.choice != TokenChoice::window;
}

}  // namespace tessera
