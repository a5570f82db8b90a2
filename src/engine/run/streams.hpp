// Cuts sessions that go on when their context is full (StreamOptions). Also has the steps before and after the computation of a part, the
// rows of one session in a run: make_ready() and after_commit().
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/run/run.hpp"

namespace tessera::detail {

// Cuts the session if it is a stream whose context is full. A cut needs pages of its own. A caller that has just filled the session, and
// in which nothing else can fail any more, may ignore the error: the next call cuts before it begins, and fails with that error.
Status cut_if_full(Session::State& session) noexcept;
[[nodiscard]] bool is_to_be_cut(const Session::State& session) noexcept;
// Returns how many computed tokens the session would have after cut_if_full().
[[nodiscard]] std::uint64_t length_after_cut(const Session::State& session) noexcept;

// Makes a part ready for compute(): checks its rows, cuts a full stream, makes a drop that is due, reserves pages. After an error the
// part is closed and the session as it was. Exception: the cut or the drop stays.
Status make_ready(Run& run, std::size_t part) noexcept;
// Commits the part, cuts the stream if its context is full now, and drops tokens beyond the session's token budget.
void after_commit(Run& run, std::size_t part) noexcept;

}  // namespace tessera::detail
