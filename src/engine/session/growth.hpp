// Changes that decoding makes to a session between runs: pending tokens, pages of the prefix index, branches of drafts, draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/session.hpp>

#include "engine/run/draw.hpp"

namespace tessera::detail {

// Makes room for tokens up to `n` in all, so that add_pending() does not allocate.
void reserve_tokens(Session::State& session, std::size_t n);
// Gives up the room for the logits of a next append(), before steps that draw on their own.
void drop_next_logits(Session::State& session) noexcept;

// Appends tokens, which are pending then. Precondition: there is room for them.
void add_pending(Session::State& session, std::span<const Token> tokens) noexcept;

// The numbers of tokens that reuse_prefix() found in the prefix index. reuse_prefix() takes the pages that the index has for the pending
// tokens and for `prompt`, which follows them. It appends the reused tokens of `prompt` to the session, which must have room for them. The
// last token of all is computed in any case, because its logits are wanted.
struct Reused {
  std::size_t pending = 0, prompt = 0;  // tokens
};
Reused reuse_prefix(Session::State& session, std::span<const Token> prompt) noexcept;

// Returns whether drafts of the session may branch: its cache can be forked, and the backend writes a row into several caches.
[[nodiscard]] bool can_branch(const Session::State& session) noexcept;
// Replaces the session's cache by `branch`, a fork of it in which a branch of drafts was computed.
void follow_branch(Session::State& session, KvCache branch) noexcept;

// Begins a series of guesses behind the session's tokens (TargetGuesses), and ends all earlier ones. Returns its number, from 1 on.
std::uint64_t begin_guesses(Session::State& session) noexcept;

// Draws the token behind the session's last one, from its logits  [vocab].
void draw_next(Draw& draw, const Session::State& session, std::span<const float> logits) noexcept;

// The tokens that were computed since the last generation, and their time: they are the prompt of the next generation.
struct PromptFigures {
  std::size_t tokens = 0;
  double seconds = 0.0;
};
[[nodiscard]] PromptFigures take_prompt_figures(Session::State& session) noexcept;
void give_back(Session::State& session, const PromptFigures& figures) noexcept;

}  // namespace tessera::detail
