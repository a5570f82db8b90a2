// A budget of tokens for a sequence. Only so many keep their keys and values between two calls; the others are dropped, as
// Session::remove() takes tokens out of the middle: what stays moves up, and the session is edited(). What has been dropped
// is not computed again, and no later token sees it.
//
// Layers with a sliding window hold what it sees, and no budget, where a drop leaves it that: `recent` is at least the longest
// window and a page. Else all layers hold the budget's tokens.
//
// A drop leaves seven eighths of the budget (tokens_left()), so that the next one is some tokens away. It happens
//   - at the end of a prompt (an append(), a session's rows in a batch, the prompt of a scheduler's request) that is longer
//     than the budget: the prompt itself is computed in full, and needs its pages until then;
//   - where a sequence that grows token by token reaches the budget.
#pragma once

#include <cstdint>

namespace tessera {

// Which tokens stay, beside the first (`sinks`) and the last (`recent`).
enum class TokenChoice : std::int32_t {
  window = 0,  // none: the last ones alone (StreamingLLM; Xiao et al. 2023)
  h2o = 1,     // those that have been attended to most so far (H2O; Zhang et al. 2023. Scissorhands; Liu et al. 2023)
  snapkv = 2,  // those that the last kAskingRows rows before the drop attend to most (SnapKV; Li et al. 2024)
};

struct TokenBudget {
  std::uint32_t tokens = 0;  // of a sequence; 0: no budget. At least kLeastTokenBudget
  TokenChoice choice = TokenChoice::window;
  std::uint32_t sinks = 4;
  std::uint32_t recent = 0;  // 0: of h2o half of what is left, of snapkv kAskingRows. A window's are all the rest
};

inline constexpr std::uint32_t kLeastTokenBudget = 128;
inline constexpr std::uint32_t kNoTokenBudget = ~std::uint32_t{0};
// Rows whose attention says what stays under snapkv.
inline constexpr std::uint32_t kAskingRows = 32;
// Under h2o every such row of a sequence says what it attends to.
inline constexpr std::uint32_t kVotingEvery = 16;

// What a drop leaves.
[[nodiscard]] constexpr std::uint64_t tokens_left(const TokenBudget& budget) noexcept {
  return budget.tokens - budget.tokens / 8;
}
// Whether the choice needs to know what rows attend to.
[[nodiscard]] constexpr bool counts_attention(const TokenBudget& budget) noexcept {
  return budget.tokens != 0 && budget.choice != TokenChoice::window;
}

}  // namespace tessera
