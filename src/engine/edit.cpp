#include "engine/edit.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera::detail {
namespace {

// A history longer than this many contexts is given up: a stream may go on for ever.
constexpr std::size_t kHistoryContexts = 4;

void note_removal(Session::State& session, std::size_t first, std::size_t last) noexcept {
  History& history = session.history;
  if (!history.replayable) return;
  try {
    history.removals.push_back({.computed = history.tokens.size(), .first = first, .last = last});
  } catch (const std::bad_alloc&) {
    history = {.tokens = {}, .removals = {}, .replayable = false};
  }
}

}  // namespace

void note_computed(Session::State& session, std::size_t first) noexcept {
  History& history = session.history;
  if (!session.kv.edited() || !history.replayable) return;
  const auto added = std::span<const Token>(session.tokens).first(session.kv.length()).subspan(first);
  const bool tokens_only = std::ranges::none_of(added, [](Token token) { return token < 0; });
  if (tokens_only && history.tokens.size() + added.size() <= kHistoryContexts * session.kv.capacity()) {
    try {
      history.tokens.insert(history.tokens.end(), added.begin(), added.end());
      return;
    } catch (const std::bad_alloc&) {  // given up below
    }
  }
  history = {.tokens = {}, .removals = {}, .replayable = false};
}

void commit_left(Session::State& session, std::size_t position, Reserved beyond) noexcept {
  const std::size_t first = session.kv.length();
  session.kv.commit(position, session.tokens, beyond);
  if (position == first) return;
  session.has_last = false;
  note_computed(session, first);
}

Status uncompute_last(Session::State& session) noexcept {
  const std::size_t length = session.kv.length();
  // Recurrent layers go back to a checkpoint, perhaps to the beginning.
  const std::size_t first = session.kv.layout().has_state() ? 0 : length - 1;
  const auto again = std::span<const Token>(session.tokens).first(length).subspan(first);
  if (std::ranges::any_of(again, [](Token token) { return token < 0; })) {
    return make_error(ErrorCode::invalid_state,
                      "the logits after the last token are not known (they were not asked for, or the session was truncated), "
                      "and it cannot be computed again, since it was an embedding: append a token first");
  }
  if (session.kv.edited()) note_removal(session, length - 1, length);
  session.shares_last_page = true;
  session.kv.truncate(length - 1);
  if (session.kv.length() == 0) session.history = {};
  session.has_last = false;
  return {};
}

void truncate(Session::State& session, std::size_t position) noexcept {
  std::vector<Token>& tokens = session.tokens;
  if (position >= tokens.size()) return;
  const std::size_t length = session.kv.length();
  if (session.kv.edited() && position < length) note_removal(session, position, length);
  if (position < length) session.shares_last_page = true;  // others may have found it while it was full
  session.kv.truncate(position);
  tokens.resize(position);
  // Behind a window, keys may be gone that `position` needs; recurrent layers go back to a checkpoint. Tokens can be computed again, embeddings cannot.
  if (session.kv.length() < position && session.kv.length() < length &&
      std::ranges::any_of(session.pending(), [](Token token) { return token < 0; })) {
    session.kv.clear();
    tokens.clear();
  }
  session.has_last = false;
  session.logits.drop_excess(session.vocab());
  session.next_logits.drop_excess(session.vocab());
  if (session.kv.length() == 0) {
    session.history = {};
    session.removed = 0;
  }
  if (tokens.empty()) session.last_layer = 0;
}

Status remove(Session::State& session, std::size_t first, std::size_t last) {
  const std::size_t length = session.kv.length();
  if (first > last || last > length) {
    return make_error(ErrorCode::invalid_argument, "tokens {} to {} of a session with {} computed tokens", first, last, length);
  }
  if (first == last) return {};
  if (last == length) {  // nothing moves: a truncation, which pending tokens outlive
    const std::vector<Token> pending(session.pending().begin(), session.pending().end());
    const std::uint32_t last_layer = session.last_layer;
    truncate(session, first);
    session.tokens.insert(session.tokens.end(), pending.begin(), pending.end());
    if (!pending.empty()) session.last_layer = last_layer;
    return {};
  }
  const Model& model = session.shared->model;
  if (model.spec.positions == Positions::learned) {
    return make_error(ErrorCode::unsupported,
                      "{} has learned positions: a key cannot be moved to another one. Truncate, and append what is to stay",
                      model.spec.architecture);
  }
  if (norms_rotated_keys(model.spec)) {
    return make_error(ErrorCode::unsupported,
                      "{} norms keys behind their rotation: a key cannot be moved to another position. Truncate, and append what "
                      "is to stay",
                      model.spec.architecture);
  }
  const FpState fp_state;
  History begun;  // of a first edit
  if (!session.kv.edited()) {
    const auto computed = std::span<const Token>(session.tokens).first(length);
    begun.replayable = std::ranges::none_of(computed, [](Token token) { return token < 0; }) &&
                       session.first_layer == 0 && session.last_layer == model.spec.n_layers();
    if (begun.replayable) begun.tokens.assign(computed.begin(), computed.end());
  }
  History& history = session.kv.edited() ? session.history : begun;
  if (history.replayable) history.removals.reserve(history.removals.size() + 1);
  const bool is_first = !session.kv.edited();
  TESSERA_TRY_STATUS(session.kv.edit(first));
  if (is_first) session.history = std::move(begun);  // from now on it is needed, whatever becomes of the move
  {
    const Turn turn(session.shared->queue, {});
    TESSERA_TRY_STATUS(session.shared->backend->move_tokens(
        session.kv.view(), {.from = last, .to = first, .count = length - last}, model.layer_ropes));
  }
  session.kv.truncate(length - (last - first));
  session.tokens.erase(session.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                       session.tokens.begin() + static_cast<std::ptrdiff_t>(last));
  session.removed += last - first;
  note_removal(session, first, last);
  return {};
}

Status keep_window(Session::State& session, std::size_t sinks, std::size_t window) {
  const std::size_t length = session.kv.length();
  if (sinks >= length || window >= length - sinks) return {};
  if (window == 0) {
    return make_error(ErrorCode::invalid_argument, "a window of 0 tokens keeps nothing to go on from; truncate to {} instead",
                      sinks);
  }
  return remove(session, sinks, length - window);
}

}  // namespace tessera::detail
