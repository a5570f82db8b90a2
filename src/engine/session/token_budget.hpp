// Token budgets of sessions (tessera/kv/token_budget.hpp): checks, the rows that vote, and the drop itself.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// The most rows of a step that vote: rows whose attention decides which tokens a budget keeps. Attention keeps the scores of all these rows
// for one layer.
inline constexpr std::uint32_t kMostVoters = 32;

// Checks a budget for the model and the backend. Errors: invalid_argument, unsupported.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const ModelSpec& spec,
                                        const backend::Backend& backend);
// Checks a budget for a session of the engine.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const StreamOptions& stream,
                                        const Engine::State& engine);
// Checks a budget for an existing sequence whose layers all hold positions from `first` on: a window may have given back pages that a drop
// needs. `layout` is the layout of the session that is to have the budget.
[[nodiscard]] Status check_held(const TokenBudget& budget, const KvLayout& layout, std::uint64_t first);

// Returns the shape of an engine's workspace, with room for rows that vote if the engine's own budget needs votes.
[[nodiscard]] backend::WorkspaceShape workspace_of(const ModelSpec& spec, const EngineOptions& options, std::uint64_t context) noexcept;

// The rows that vote in a sequence whose present prompt ends at `end`.
class Voters {
 public:
  Voters(const Session::State& session, std::uint64_t end) noexcept;
  [[nodiscard]] bool has(std::uint64_t position) const noexcept;
  // Returns the first position from `position` on whose row votes; the largest number if none does.
  [[nodiscard]] std::uint64_t first_from(std::uint64_t position) const noexcept;

 private:
  const TokenBudget& budget_;
  std::uint64_t removed_, voted_, asking_from_;
};

// Returns the first position behind the session's tokens at which there can be no draft: a row that votes, or a row behind which a drop is
// due, must not be a draft.
[[nodiscard]] std::uint64_t end_of_drafts(const Session::State& session) noexcept;

// Drops tokens if the budget is reached. Call it at the end of a prompt and after each drawn token. A drop needs memory. A caller in which
// nothing else can fail any more may ignore the error: the next call drops before it begins, and fails with that error.
Status drop_if_over(Session::State& session) noexcept;
// Makes the drop for which an earlier call had no memory, if there is one.
Status drop_if_due(Session::State& session) noexcept;

}  // namespace tessera::detail
