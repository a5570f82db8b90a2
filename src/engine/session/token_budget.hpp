// Token budgets of sessions (tessera/kv/token_budget.hpp): checks, the rows that vote, and the drop itself.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// Limit of the number of rows of one step that vote (rows whose attention decides which tokens a budget keeps). The workspace has memory
// for the attention scores of this many rows, in one layer.
inline constexpr std::uint32_t kMostVoters = 32;

// Checks a budget for the model and the backend. Errors: invalid_argument, unsupported.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const ModelSpec& spec,
                                        const backend::Backend& backend);
// As above, for a session of the engine. Further errors (invalid_argument): the session is a stream, which excludes a token budget; the
// budget chooses tokens by votes, and the engine's own budget does not, so the workspace has no memory for votes.
[[nodiscard]] Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const StreamOptions& stream,
                                        const Engine::State& engine);
// Checks whether a sequence can get this budget although its first pages may be freed (because a window has passed them). `first`: the
// first position of which all layers still have keys and values. `layout`: the layout of the session that will get the budget. Error:
// invalid_argument, a drop may need keys and values before `first`.
[[nodiscard]] Status check_held(const TokenBudget& budget, const KvLayout& layout, std::uint64_t first);

// Returns the shape of an engine's workspace. It includes voting rows if the engine's own budget chooses tokens by votes.
[[nodiscard]] backend::WorkspaceShape workspace_of(const ModelSpec& spec, std::uint32_t step_rows, const TokenBudget& budget,
                                                     std::uint64_t context) noexcept;

// Says which rows of a sequence vote. `end` is the end of the present prompt.
class Voters {
 public:
  Voters(const Session::State& session, std::uint64_t end) noexcept;
  [[nodiscard]] bool has(std::uint64_t position) const noexcept;
  // Returns the first position at or after `position` whose row votes; the largest number if no row votes.
  [[nodiscard]] std::uint64_t first_from(std::uint64_t position) const noexcept;

 private:
  const TokenBudget& budget_;
  std::uint64_t removed_, voted_, asking_from_;
};

// Returns the first position after the session's tokens that must not be a draft. Rows that vote, and rows after which a drop is due, must
// not be drafts, because a draft may be rejected.
[[nodiscard]] std::uint64_t end_of_drafts(const Session::State& session) noexcept;

// Drops tokens if the sequence has reached its budget. Call it at the end of a prompt and after each drawn token. A drop allocates memory,
// so it can fail. The next call on the session then tries the drop first, and returns its error; so a caller that must not fail may ignore
// the error.
Status drop_if_over(Session::State& session) noexcept;
// Makes a drop that an earlier call could not make because memory was short. Does nothing if no drop is due.
Status drop_if_due(Session::State& session) noexcept;

}  // namespace tessera::detail
