// Edits a sequence: truncates it, removes tokens, and records the edits in the history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "engine/adapters/sequence_adapters.hpp"
#include "kv/token_choice.hpp"

namespace tessera::detail {

// Returns an error (unsupported) if tokens of this model cannot move to another position. `so` ends the error's message. It names the
// consequence for the caller, such as "none of its tokens can be dropped".
[[nodiscard]] Status check_movable(const ModelSpec& spec, std::string_view so);

// Returns whether the session can give up its pages to free memory, because its tokens can be computed again with the same bits. This is
// so if the sequence has no dropped tokens, all its embeddings can be found again (SessionOptions::embedding_of), and no drop (token
// budget) or cut (stream) is due.
[[nodiscard]] bool can_give_pages_up(const Session::State& session) noexcept;
// Frees all pages of the session. Afterwards all tokens are pending. Precondition: can_give_pages_up().
void give_pages_up(Session::State& session) noexcept;

// Implements Session::truncate().
void truncate(Session::State& session, std::size_t position) noexcept;
// Implements Session::use_adapters(). Tokens become pending from the first token on that the new adapters compute differently.
Status use_adapters(Session::State& session, SequenceAdapters adapters) noexcept;
[[nodiscard]] const SequenceAdapters& adapters_of(const Session::State& session) noexcept;
// Undoes SequenceAdapters::settle() for the session's adapters: from now on, invocations activate adapters again. An adapter whose
// invocation is not among the session's tokens waits for it again.
void release_adapters(Session::State& session) noexcept;
// Implements Session::remove().
Status remove(Session::State& session, std::size_t first, std::size_t last);
// Removes several runs of computed tokens as one edit. Preconditions: the runs are in ascending order with at least one token between them,
// and the last token is not removed.
Status remove(Session::State& session, std::span<const kv::TokenRun> runs);
// Implements Session::keep_window().
Status keep_window(Session::State& session, std::size_t sinks, std::size_t window);

// Records in the history of an edited session that its tokens from `first` up to its length have been computed.
void note_computed(Session::State& session, std::size_t first) noexcept;
// Marks the pending tokens before `position` as computed. Precondition: a run has computed all layers of these tokens, and has left the
// keys and values in the reserved pages after the session's end (Run::leave(), Reserved::keep). `beyond` says whether keys and values from
// `position` on are kept too.
void commit_left(Session::State& session, std::size_t position, Reserved beyond) noexcept;
// Makes the session's last token pending again, and drops its keys and values. Precondition: the session has computed tokens and no pending
// tokens. Error: invalid_state, an embedding would have to be computed again, and the session has no function that finds it.
Status uncompute_last(Session::State& session) noexcept;

}  // namespace tessera::detail
