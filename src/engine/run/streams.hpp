// Sessions that go on when their context is full (StreamOptions): the one place that cuts them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/run/run.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

// Cuts a streaming session whose context is full. Who has filled it calls this when nothing else can fail any more, and
// may ignore an error (a cut needs pages of its own): the next call then cuts before it begins, and fails with it.
Status cut_if_full(Session::State& session) noexcept;
[[nodiscard]] bool is_to_be_cut(const Session::State& session) noexcept;
// Its computed tokens then.
[[nodiscard]] std::uint64_t length_after_cut(const Session::State& session) noexcept;

// Everything before a part is computed: its rows are looked at, a full stream is cut, pages are reserved. On error the
// part is closed, and the session as it was, but for that cut, or a drop that was due.
Status make_ready(Run& run, std::size_t part) noexcept;
// The part is the session's, and a stream that it filled is cut. It was the end of a prompt: what is beyond a budget of tokens
// is dropped.
void settle(Run& run, std::size_t part) noexcept;

}  // namespace tessera::detail
