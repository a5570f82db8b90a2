// The changes that decoding makes to a session between runs: it adds pending tokens, takes pages from the prefix index, replaces the cache
// by an accepted branch, and draws tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/session.hpp>

#include "engine/run/draw.hpp"

namespace tessera::detail {

// Reserves memory for `n` tokens, including the existing tokens, so that add_pending() does not allocate.
void reserve_tokens(Session::State& session, std::size_t n);
// Frees the buffer into which the next append() would write logits. A generation does not need the buffer, because its steps draw tokens
// without it.
void drop_next_logits(Session::State& session) noexcept;

// Appends pending tokens. Precondition: reserve_tokens() has reserved memory for them.
void add_pending(Session::State& session, std::span<const Token> tokens) noexcept;

// The numbers of tokens whose pages reuse_prefix() has found in the prefix index.
struct Reused {
  std::size_t pending = 0, prompt = 0;  // numbers of tokens
};
// Looks up the session's pending tokens, followed by the tokens of `prompt`, in the prefix index. Takes the pages of the tokens that are
// found, and appends those of them that belong to `prompt` to the session. Precondition: reserve_tokens() has reserved memory for `prompt`.
// The last token of `prompt` (of the pending tokens, if `prompt` is empty) is never taken from the index: its logits are wanted, so it must
// be computed.
Reused reuse_prefix(Session::State& session, std::span<const Token> prompt) noexcept;

// Returns whether the session's drafts may branch. The session's cache must be paged, without recurrent layers and without a token
// budget, and the backend must be able to write a row into several caches.
[[nodiscard]] bool can_branch(const Session::State& session) noexcept;
// Replaces the session's cache by `branch`: a fork of the cache into which an accepted branch of drafts was computed.
void follow_branch(Session::State& session, KvCache branch) noexcept;

// Begins a series of guesses (TargetGuesses: the model's guesses of the tokens after the session's last token). All earlier series of the
// session become invalid. Returns the number of the new series, counted from 1.
std::uint64_t begin_guesses(Session::State& session) noexcept;

// Draws the token after the session's last token, from that last token's logits  [vocab].
void draw_next(Draw& draw, const Session::State& session, std::span<const float> logits) noexcept;

// Number of prompt tokens that were computed since the previous generation, and the seconds that this took. A generation that begins
// takes these figures from the session, to report them; give_back() returns them, if the generation does not report them after all.
struct PromptFigures {
  std::size_t tokens = 0;
  double seconds = 0.0;
};
[[nodiscard]] PromptFigures take_prompt_figures(Session::State& session) noexcept;
void give_back(Session::State& session, const PromptFigures& figures) noexcept;

}  // namespace tessera::detail
