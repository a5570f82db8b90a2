// The changes that decoding makes to a session between runs: it adds pending tokens, takes pages from the prefix index, follows a branch
// of drafts, and draws tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/session.hpp>

#include "engine/run/draw.hpp"

namespace tessera::detail {

// Makes room for `n` tokens in all (existing tokens included), so that add_pending() does not allocate.
void reserve_tokens(Session::State& session, std::size_t n);
// Frees the buffer that a next append() would write logits into. Steps of a generation do not need it, because they draw by themselves.
void drop_next_logits(Session::State& session) noexcept;

// Appends tokens as pending ones. Precondition: reserve_tokens() has made room for them.
void add_pending(Session::State& session, std::span<const Token> tokens) noexcept;

// The result of reuse_prefix(), which takes from the prefix index the pages of the pending tokens and of the tokens of `prompt` behind
// them. The members say how many pending tokens, and how many tokens of `prompt`, were found. The found tokens of `prompt` are appended to
// the session, which must have room for them. The last token of all is never taken from the index: it must be computed, because its logits
// are wanted.
struct Reused {
  std::size_t pending = 0, prompt = 0;  // tokens
};
Reused reuse_prefix(Session::State& session, std::span<const Token> prompt) noexcept;

// Returns whether the session's drafts may branch. The session's cache must be paged, without recurrent layers and without a token
// budget, and the backend must be able to write a row into several caches.
[[nodiscard]] bool can_branch(const Session::State& session) noexcept;
// Replaces the session's cache by `branch`: a fork of the cache into which an accepted branch of drafts was computed.
void follow_branch(Session::State& session, KvCache branch) noexcept;

// Starts a new TargetGuesses (guesses of the model about the tokens behind the session's last one), and makes all earlier ones of the
// session invalid. Returns its number, counted from 1.
std::uint64_t begin_guesses(Session::State& session) noexcept;

// Draws the token that follows the session's last one, from that token's logits  [vocab].
void draw_next(Draw& draw, const Session::State& session, std::span<const float> logits) noexcept;

// The number of prompt tokens that were computed since the last generation, and their seconds: the prompt figures of the next generation.
struct PromptFigures {
  std::size_t tokens = 0;
  double seconds = 0.0;
};
[[nodiscard]] PromptFigures take_prompt_figures(Session::State& session) noexcept;
void give_back(Session::State& session, const PromptFigures& figures) noexcept;

}  // namespace tessera::detail
