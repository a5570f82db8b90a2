// Sessions with a budget of tokens (tessera/kv/token_budget.hpp): who may have one, which rows vote, and the drop itself.
#pragma once

#include <cstdint>

#include "engine/states.hpp"

namespace tessera::detail {

// Rows of a step that vote, at most: their scores are kept for a layer.
inline constexpr std::uint32_t kMostVoters = 32;

[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const ModelSpec& spec,
                                        const backend::Backend& backend);
// The same for a session of an engine.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const StreamOptions& stream,
                                        const Engine::State& engine);
// Of a sequence that is there already, whose layers all hold `first` and later ones: a window may have given back what a drop
// would move. `layout`: of the session that is to have the budget.
[[nodiscard]] Status check_held(const TokenBudget& budget, const KvLayout& layout, std::uint64_t first);

// The workspace of an engine, with room for rows that vote if its own budget counts them.
[[nodiscard]] backend::WorkspaceShape workspace_of(const ModelSpec& spec, const EngineOptions& options, std::uint64_t context) noexcept;

// Which rows vote of a sequence whose present prompt ends at `end`.
class Voters {
 public:
  Voters(const Session::State& session, std::uint64_t end) noexcept;
  [[nodiscard]] bool has(std::uint64_t position) const noexcept;
  // The first one from `position` on; beyond the budget if there is none.
  [[nodiscard]] std::uint64_t first_from(std::uint64_t position) const noexcept;

 private:
  const TokenBudget& budget_;
  std::uint64_t removed_, voted_, asking_from_;
};

// The first position behind the session's tokens at which there can be no draft: rows that vote, and those behind which a drop
// is due, are no drafts.
[[nodiscard]] std::uint64_t end_of_drafts(const Session::State& session) noexcept;

// Where a prompt has ended, or a token has come: drops what is beyond the budget. Who calls it when nothing else can fail any
// more may ignore an error (a drop needs memory): the next call then drops before it begins, and fails with it.
Status drop_if_over(Session::State& session) noexcept;
// What an earlier call had no memory for.
Status drop_if_due(Session::State& session) noexcept;

}  // namespace tessera::detail
