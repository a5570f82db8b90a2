// Edits of a sequence that a model does not undo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/states.hpp"

namespace tessera::detail {

// Session::truncate().
void truncate(Session::State& session, std::size_t position) noexcept;
// Session::remove() and keep_window().
Status remove(Session::State& session, std::size_t first, std::size_t last);
Status keep_window(Session::State& session, std::size_t sinks, std::size_t window);

// Notes that a session's tokens from `first` on have been computed.
void note_computed(Session::State& session, std::size_t first) noexcept;
// Takes back what has been computed from `length` on: these tokens are pending again. A streaming session that has been
// cut meanwhile stays so.
void uncompute(Session::State& session, std::size_t length) noexcept;
// Cuts a streaming session whose context is full: after each batch, and if that failed (it needs pages of its own),
// before the next one, which fails with it.
Status cut_if_full(Session::State& session) noexcept;
// Its computed tokens then.
[[nodiscard]] std::uint64_t length_after_cut(const Session::State& session) noexcept;

}  // namespace tessera::detail
