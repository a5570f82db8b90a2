// A budget of tokens for a sequence: at most `tokens` tokens keep their keys and values between two calls. The other tokens are dropped, in
// the way in which Session::remove() removes tokens: later tokens move up, and the session is edited(). A dropped token is not computed
// again, and no later token sees it.
//
//   auto session = engine.session({.kv = {.budget = {.tokens = 256, .choice = TokenChoice::snapkv}}});
//
// Layers with a sliding window: by default all layers hold the same tokens, up to the budget. Exception: if `recent` is at least the
// longest window plus the tokens of a page, the budget limits only the layers without a window. Each layer with a window then holds the
// tokens that its window sees.
//
// A drop leaves seven eighths of the budget (tokens_left()), so that not every further token needs a drop. A drop happens
//   - at the end of a prompt (an append(), a session's rows in a batch, the prompt of a scheduler's request) that is longer
//     than the budget: the prompt itself is computed in full, and needs its pages until then;
//   - where a sequence that grows token by token reaches the budget.
#pragma once

#include <cstdint>

namespace tessera {

// Says which tokens stay in addition to the first `sinks` and the last `recent` tokens.
enum class TokenChoice : std::int32_t {
  window = 0,  // no further tokens: only the first `sinks` and the last `recent` tokens stay (StreamingLLM; Xiao et al. 2023)
  h2o = 1,     // tokens that have been attended to most so far (H2O; Zhang et al. 2023. Scissorhands; Liu et al. 2023)
  snapkv = 2,  // tokens that the last kAskingRows rows before the drop attend to most (SnapKV; Li et al. 2024)
};

struct TokenBudget {
  std::uint32_t tokens = 0;  // most tokens of a sequence that keep keys and values: at least kLeastTokenBudget, or 0: no budget
  TokenChoice choice = TokenChoice::window;
  std::uint32_t sinks = 4;   // first tokens that always stay
  // Last tokens that always stay. 0: half of tokens_left() with h2o, kAskingRows with snapkv. With `window` it has no effect: the last
  // tokens_left() - sinks tokens stay.
  std::uint32_t recent = 0;
};

inline constexpr std::uint32_t kLeastTokenBudget = 128;
inline constexpr std::uint32_t kNoTokenBudget = ~std::uint32_t{0};
// The number of rows (the last ones before a drop) whose attention decides which tokens stay with snapkv.
inline constexpr std::uint32_t kAskingRows = 32;
// With h2o the attention of every 16th row of a sequence is added up.
inline constexpr std::uint32_t kVotingEvery = 16;

// Returns the number of tokens that a drop leaves.
[[nodiscard]] constexpr std::uint64_t tokens_left(const TokenBudget& budget) noexcept {
  return budget.tokens - budget.tokens / 8;
}
// Returns whether the choice needs to know what rows attend to.
[[nodiscard]] constexpr bool counts_attention(const TokenBudget& budget) noexcept {
  return budget.tokens != 0 && budget.choice != TokenChoice::window;
}

}  // namespace tessera
