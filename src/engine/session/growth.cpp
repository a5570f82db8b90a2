#include "engine/session/growth.hpp"

#include <algorithm>
#include <utility>

#include "engine/session/token_budget.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

void reserve_tokens(Session::State& session, std::size_t n) { session.reserve_tokens(n); }

void drop_next_logits(Session::State& session) noexcept { session.next_logits.drop(); }

void add_pending(Session::State& session, std::span<const Token> tokens) noexcept {
  session.tokens.insert(session.tokens.end(), tokens.begin(), tokens.end());  // the caller has reserved memory, so this does not allocate
}

namespace {

// Looks up the beginning of `inputs` in the prefix index, takes the pages that the index has for it, and returns the number of tokens on
// these pages. `inputs` are the inputs after the session's computed tokens. `end`: end of the present prompt. Stops before the first row
// that votes for a token budget, because that row must be computed.
std::size_t adopt(Session::State& session, const KvInputs& inputs, std::uint64_t end) noexcept {
  const std::uint64_t length = session.kv.length();
  const std::uint64_t before_votes = Voters(session, end).first_from(length) - length;
  const KvInputs first = inputs.first(std::min<std::size_t>(inputs.size(), before_votes));
  const std::size_t n = session.kv.adopt({first.tokens, first.contents, session.adapters.keys(), length});
  session.reused += n;
  session.has_last = session.has_last && n == 0;
  return n;
}

}  // namespace

Reused reuse_prefix(Session::State& session, std::span<const Token> prompt) noexcept {
  const std::uint64_t end = session.tokens.size() + prompt.size();
  Reused reused;
  if (const auto pending = session.pending(); !pending.empty()) {
    reused.pending = adopt(session, session.inputs().subspan(session.kv.length(), pending.size() - (prompt.empty() ? 1 : 0)), end);
  }
  if (session.has_pending() || prompt.size() < 2) return reused;
  reused.prompt = adopt(session, prompt.first(prompt.size() - 1), end);
  add_pending(session, prompt.first(reused.prompt));
  return reused;
}

bool can_branch(const Session::State& session) noexcept {
  const bool forks = session.kv.kind() == KvKind::paged && !session.kv.layout().has_state() && session.kv_options.budget.tokens == 0;
  return forks && session.shared->backend->computes(backend::Capability::branches);
}

void follow_branch(Session::State& session, KvCache branch) noexcept {
  branch.commit(session.kv.length(), session.inputs(), Reserved::keep);
  session.kv = std::move(branch);
}

std::uint64_t begin_guesses(Session::State& session) noexcept { return ++session.guesses; }

void draw_next(Draw& draw, const Session::State& session, std::span<const float> logits) noexcept {
  draw_from(draw, logits, session.tokens, session.stream_position(), session.shared->tokenizer.suppressed());
}

PromptFigures take_prompt_figures(Session::State& session) noexcept {
  return {.tokens = std::exchange(session.prompt_tokens, 0), .seconds = std::exchange(session.prompt_seconds, 0.0)};
}

void give_back(Session::State& session, const PromptFigures& figures) noexcept {
  session.prompt_tokens = figures.tokens;
  session.prompt_seconds = figures.seconds;
}

}  // namespace tessera::detail
