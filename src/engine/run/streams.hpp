// Cuts streams, that is sessions that go on when their context is full (StreamOptions): removes the older tokens except the sinks. Also
// has what every run does before and after it computes a part (the rows of one session): make_ready() and after_commit().
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/run/run.hpp"

namespace tessera::detail {

// Cuts the session if it is a stream whose context is full; otherwise does nothing. A cut needs additional pages, so it can fail. After
// an error the next call on the session first tries the cut again. So a caller that has just filled the session may ignore the error.
Status cut_if_full(Session::State& session) noexcept;
[[nodiscard]] bool is_to_be_cut(const Session::State& session) noexcept;
// Returns how many computed tokens the session would have after cut_if_full().
[[nodiscard]] std::uint64_t length_after_cut(const Session::State& session) noexcept;

// Prepares a part for compute(): checks its rows, cuts a stream that is full, makes a drop that is due (token budget), and reserves
// pages. After an error the part is closed, and the session is as it was. Exception: a cut or a drop is not undone.
Status make_ready(Run& run, std::size_t part) noexcept;
// Commits the part. Then cuts the stream if its context is full, and drops tokens beyond the session's token budget.
void after_commit(Run& run, std::size_t part) noexcept;

}  // namespace tessera::detail
