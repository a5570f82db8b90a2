// A budget of tokens for a sequence: at most `tokens` tokens keep their keys and values between two calls. The others are dropped, as
// Session::remove() takes tokens out of the middle: later tokens move up, and the session is edited(). A dropped token is not
// computed again, and no later token sees it.
//
//   auto session = engine.session({.kv = {.budget = {.tokens = 1024, .choice = TokenChoice::snapkv}}});
//
// If `recent` is at least the longest sliding window and a page, layers with a sliding window hold the tokens that the window
// sees, and the budget is for the other layers. Otherwise all layers hold the budget's tokens.
//
// A drop leaves seven eighths of the budget (tokens_left()), so that the next drop is some tokens away. A drop happens
//   - at the end of a prompt (an append(), a session's rows in a batch, the prompt of a scheduler's request) that is longer
//     than the budget: the prompt itself is computed in full, and needs its pages until then;
//   - where a sequence that grows token by token reaches the budget.
#pragma once

#include <cstdint>

namespace tessera {

// Says which tokens stay beside the first `sinks` and the last `recent` tokens.
enum class TokenChoice : std::int32_t {
  window = 0,  // no others: only the first and the last (StreamingLLM; Xiao et al. 2023)
  h2o = 1,     // tokens that have been attended to most so far (H2O; Zhang et al. 2023. Scissorhands; Liu et al. 2023)
  snapkv = 2,  // tokens that the last kAskingRows rows before the drop attend to most (SnapKV; Li et al. 2024)
};

struct TokenBudget {
  std::uint32_t tokens = 0;  // tokens of a sequence, at least kLeastTokenBudget; 0: no budget
  TokenChoice choice = TokenChoice::window;
  std::uint32_t sinks = 4;
  std::uint32_t recent = 0;  // last tokens that stay; 0: half of tokens_left() (h2o), kAskingRows (snapkv). window: all but the sinks
};

inline constexpr std::uint32_t kLeastTokenBudget = 128;
inline constexpr std::uint32_t kNoTokenBudget = ~std::uint32_t{0};
// Rows whose attention decides which tokens stay under snapkv.
inline constexpr std::uint32_t kAskingRows = 32;
// Under h2o every 16th row of a sequence is asked what it attends to.
inline constexpr std::uint32_t kVotingEvery = 16;

// Returns the tokens that a drop leaves.
[[nodiscard]] constexpr std::uint64_t tokens_left(const TokenBudget& budget) noexcept {
  return budget.tokens - budget.tokens / 8;
}
// Returns whether the choice needs to know what rows attend to.
[[nodiscard]] constexpr bool counts_attention(const TokenBudget& budget) noexcept {
  return budget.tokens != 0 && budget.choice != TokenChoice::window;
}

}  // namespace tessera
