// Edits of a sequence: truncation, removal of tokens, and their record in the history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "kv/token_choice.hpp"

namespace tessera::detail {

// Returns an error (unsupported) if tokens of this model cannot move to another position. Its message ends with `so`.
[[nodiscard]] Status check_movable(const ModelSpec& spec, std::string_view so);

// Returns whether the session's pages can be given up and its tokens computed again to the same bits: no token was dropped, no drop or
// cut is due, and there is no embedding.
[[nodiscard]] bool can_give_pages_up(const Session::State& session) noexcept;
// Gives up all pages of the session; its tokens are pending then. Precondition: can_give_pages_up().
void give_pages_up(Session::State& session) noexcept;

// Implements Session::truncate().
void truncate(Session::State& session, std::size_t position) noexcept;
// Implements Session::remove().
Status remove(Session::State& session, std::size_t first, std::size_t last);
// Removes several runs of computed tokens as one edit. Preconditions: the runs ascend, do not touch each other, and leave the last token.
Status remove(Session::State& session, std::span<const kv::TokenRun> runs);
// Implements Session::keep_window().
Status keep_window(Session::State& session, std::size_t sinks, std::size_t window);

// Notes in the history of an edited session that its tokens from `first` to its length have been computed.
void note_computed(Session::State& session, std::size_t first) noexcept;
// Marks the pending tokens up to `position` as computed, after a run of all layers that has left their keys and values behind the session's
// length (Run::leave(), Reserved::keep). `beyond` says whether keys and values behind `position` are kept.
void commit_left(Session::State& session, std::size_t position, Reserved beyond) noexcept;
// Makes the session's last token pending again and drops its keys and values. Precondition: the session has computed tokens, none pending.
// Error: invalid_state, the token is an embedding, which is not kept.
Status uncompute_last(Session::State& session) noexcept;

}  // namespace tessera::detail
