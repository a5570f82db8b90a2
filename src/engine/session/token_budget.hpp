// Token budgets of sessions (tessera/kv/token_budget.hpp): checks, the rows that vote, and the drop itself.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// The largest number of rows of one step that may vote, which is to say whose attention decides which tokens a budget keeps. The
// workspace has room for the scores of these rows in one layer.
inline constexpr std::uint32_t kMostVoters = 32;

// Checks a budget for the model and the backend. Errors: invalid_argument, unsupported.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const ModelSpec& spec,
                                        const backend::Backend& backend);
// Does the same for a session of the engine, which may be a stream (not together with a budget).
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const StreamOptions& stream,
                                        const Engine::State& engine);
// Checks a budget for a sequence that exists already and no longer has all its pages: all layers hold positions from `first` on, because
// windows have given earlier pages back. A drop might need them. `layout` is the layout of the session that is to get the budget.
[[nodiscard]] Status check_held(const TokenBudget& budget, const KvLayout& layout, std::uint64_t first);

// Returns the shape of an engine's workspace. It has room for voting rows if the engine's own budget chooses tokens by votes.
[[nodiscard]] backend::WorkspaceShape workspace_of(const ModelSpec& spec, std::uint32_t step_rows, const TokenBudget& budget,
                                                     std::uint64_t context) noexcept;

// Says which rows of a sequence vote. `end` is where its present prompt ends.
class Voters {
 public:
  Voters(const Session::State& session, std::uint64_t end) noexcept;
  [[nodiscard]] bool has(std::uint64_t position) const noexcept;
  // Returns the first position at or after `position` whose row votes; the largest number if there is none.
  [[nodiscard]] std::uint64_t first_from(std::uint64_t position) const noexcept;

 private:
  const TokenBudget& budget_;
  std::uint64_t removed_, voted_, asking_from_;
};

// Returns the first position behind the session's tokens at which no draft may be. Rows that vote and rows after which a drop is due must
// not be drafts, because a draft may be rejected.
[[nodiscard]] std::uint64_t end_of_drafts(const Session::State& session) noexcept;

// Drops tokens if the sequence has reached its budget. Call it at the end of a prompt and after each drawn token. A drop allocates
// memory. A caller that must not fail any more may ignore the error: then the next call on the session tries the drop first, and returns
// its error.
Status drop_if_over(Session::State& session) noexcept;
// Makes up for a drop that an earlier call could not make for want of memory, if there is one.
Status drop_if_due(Session::State& session) noexcept;

}  // namespace tessera::detail
