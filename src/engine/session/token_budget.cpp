#include "engine/session/token_budget.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/session/edit.hpp"
#include "engine/states.hpp"
#include "model/forward.hpp"

namespace tessera::detail {
namespace {

// snapkv: number of neighbours on either side whose votes a token also counts, as in the paper (a pooling kernel of 7).
constexpr std::uint64_t kPooled = 3;

}  // namespace

Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const ModelSpec& spec, const backend::Backend& backend) {
  if (budget.tokens == 0) return {};
  if (budget.choice < TokenChoice::window || budget.choice > TokenChoice::snapkv) {
    return make_error(ErrorCode::invalid_argument, "a choice of tokens of kind {}; choose window, h2o or snapkv", static_cast<int>(budget.choice));
  }
  TESSERA_TRY_STATUS(check_movable(spec, "none of its tokens can be dropped"));
  if (budget.tokens < kLeastTokenBudget || budget.tokens > context) {
    return make_error(ErrorCode::invalid_argument, "a budget of {} tokens in a context of {}; choose {} to {}", budget.tokens, context,
                      kLeastTokenBudget, context);
  }
  if (budget.choice != TokenChoice::window && std::uint64_t{budget.sinks} + budget.recent >= tokens_left(budget)) {
    return make_error(ErrorCode::invalid_argument, "{} sinks and {} recent tokens leave nothing to choose of the {} that a budget of {} keeps",
                      budget.sinks, budget.recent, tokens_left(budget), budget.tokens);
  }
  if (budget.choice == TokenChoice::window && budget.sinks >= tokens_left(budget)) {
    return make_error(ErrorCode::invalid_argument, "{} sinks are all that a budget of {} keeps", budget.sinks, budget.tokens);
  }
  if (counts_attention(budget) && !backend.computes(backend::Capability::votes)) {
    return make_error(ErrorCode::unsupported, "backend {} does not count what rows attend to, which h2o and snapkv choose tokens by; choose window",
                      backend.name());
  }
  return {};
}

Status check_token_budget(const TokenBudget& budget, std::uint64_t context, const StreamOptions& stream, const Engine::State& engine) {
  TESSERA_TRY_STATUS(check_token_budget(budget, context, engine.model.spec, *engine.backend));
  if (budget.tokens != 0 && stream.window != 0) {
    return make_error(ErrorCode::invalid_argument, "a session has a budget of tokens or is a stream, not both");
  }
  if (counts_attention(budget) && !counts_attention(engine.options.kv.budget)) {
    return make_error(ErrorCode::invalid_argument,
                      "the engine was loaded without room to count what rows attend to: give it a budget of h2o or snapkv "
                      "(EngineOptions::kv)");
  }
  return {};
}

Status check_held(const TokenBudget& budget, const KvLayout& layout, std::uint64_t first) {
  if (budget.tokens == 0 || first == 0 || leaves_windows(budget, layout)) return {};
  return make_error(ErrorCode::invalid_argument,
                    "a sliding window of the model has passed the session's first {} tokens, and a drop may need them: take no budget, or "
                    "one whose recent tokens are those of the window and a page more",
                    first);
}

backend::WorkspaceShape workspace_of(const ModelSpec& spec, std::uint32_t step_rows, const TokenBudget& budget, std::uint64_t context) noexcept {
  backend::WorkspaceShape shape = workspace_shape(spec, step_rows);
  if (!counts_attention(budget)) return shape;
  shape.voters = std::min(step_rows, kMostVoters);
  shape.vote_keys = context;
  return shape;
}

Voters::Voters(const Session::State& session, std::uint64_t end) noexcept
    : budget_(session.kv_options.budget), removed_(session.removed), voted_(session.votes.voted) {
  const std::uint64_t drop = std::max<std::uint64_t>(end, budget_.tokens);
  asking_from_ = drop - std::min<std::uint64_t>(drop, kAskingRows);
}

bool Voters::has(std::uint64_t position) const noexcept {
  if (!counts_attention(budget_) || removed_ + position < voted_) return false;
  if (budget_.choice == TokenChoice::snapkv) return position >= asking_from_;
  return (removed_ + position) % kVotingEvery == kVotingEvery - 1;
}

std::uint64_t Voters::first_from(std::uint64_t position) const noexcept {
  if (!counts_attention(budget_)) return ~std::uint64_t{0};
  if (budget_.choice == TokenChoice::snapkv) return std::max(position, asking_from_);
  return position + (kVotingEvery - 1 - (removed_ + position) % kVotingEvery);
}

std::uint64_t end_of_drafts(const Session::State& session) noexcept {
  const TokenBudget& budget = session.kv_options.budget;
  const std::uint64_t capacity = session.kv.capacity();
  if (budget.tokens == 0) return capacity;
  const std::uint64_t next = session.tokens.size();
  return std::min({capacity, std::uint64_t{budget.tokens}, Voters(session, next).first_from(next)});
}

Status drop_if_over(Session::State& session) noexcept {
  const TokenBudget& budget = session.kv_options.budget;
  const std::uint64_t length = session.kv.length();
  if (budget.tokens == 0 || length < budget.tokens) return {};
  session.drop_is_due = true;
  return guard([&]() -> Status {
    Votes& votes = session.votes;
    if (counts_attention(budget)) votes.of_tokens.resize(length);
    const auto runs = kv::tokens_to_drop(length, counts_attention(budget) ? std::span<const std::uint64_t>(votes.of_tokens) : std::span<const std::uint64_t>(),
                                         {.tokens = tokens_left(budget),
                                          .sinks = budget.sinks,
                                          .recent = budget.recent,
                                          .pooled = budget.choice == TokenChoice::snapkv ? kPooled : 0});
    TESSERA_TRY_STATUS(remove(session, runs));
    // With snapkv, the next drop counts only the votes of rows that are computed after this drop.
    if (budget.choice == TokenChoice::snapkv) std::ranges::fill(votes.of_tokens, 0);
    session.drop_is_due = false;
    return {};
  });
}

Status drop_if_due(Session::State& session) noexcept { return session.drop_is_due ? drop_if_over(session) : Status(); }

}  // namespace tessera::detail
