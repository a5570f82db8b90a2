// Edits of a sequence that a model does not undo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/states.hpp"

namespace tessera::detail {

// An error, which ends with `so`, if a token of this model cannot be moved to another position.
[[nodiscard]] Status check_movable(const ModelSpec& spec, std::string_view so);

// Returns whether the session's pages can be given up and its tokens computed again to the same bits: so no token was dropped, and
// none is to be dropped before anything else is computed.
[[nodiscard]] bool can_give_pages_up(const Session::State& session) noexcept;
// Gives up all pages of such a session. Its tokens are pending from then on.
void give_pages_up(Session::State& session) noexcept;

// Session::truncate().
void truncate(Session::State& session, std::size_t position) noexcept;
// Session::remove() and keep_window().
Status remove(Session::State& session, std::size_t first, std::size_t last);
// Several runs of computed tokens as one edit: ascending, none next to another, the last token in none of them.
Status remove(Session::State& session, std::span<const kv::TokenRun> runs);
Status keep_window(Session::State& session, std::size_t sinks, std::size_t window);

// Notes that a session's tokens from `first` to its length have been computed.
void note_computed(Session::State& session, std::size_t first) noexcept;
// A run of all layers has left keys and values behind the session's length: the pending tokens up to `position` are
// computed by them. What is behind that stays, or goes.
void commit_left(Session::State& session, std::size_t position, Reserved beyond) noexcept;
// Makes the last token of a session that has some pending again: its keys and values go. Not if it is an embedding,
// which is not kept.
Status uncompute_last(Session::State& session) noexcept;

}  // namespace tessera::detail
