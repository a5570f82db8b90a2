#include "engine/session/edit.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/run/streams.hpp"
#include "engine/states.hpp"
#include "model/draft_heads.hpp"
#include "model/step/step_executor.hpp"

namespace tessera::detail {
namespace {

// Limit of the length of a session's history (History::tokens), in multiples of the context. A stream may go on without end; if its
// history grows beyond this limit, the history is dropped, and verify() can no longer check the session.
constexpr std::size_t kHistoryContexts = 4;

// Records one edit in the history: the removal of these runs of tokens.
void note_removals(Session::State& session, std::span<const kv::TokenRun> runs) noexcept {
  History& history = session.history;
  if (!history.replayable) return;
  try {
    for (const kv::TokenRun& run : runs) {
      history.removals.push_back({.computed = history.tokens.size(), .first = run.first, .last = run.last, .joins = &run != runs.data()});
    }
  } catch (const std::bad_alloc&) {
    history.give_up();
  }
}
void note_removal(Session::State& session, std::size_t first, std::size_t last) noexcept {
  const kv::TokenRun run{first, last};
  note_removals(session, {&run, 1});
}

}  // namespace

void note_computed(Session::State& session, std::size_t first) noexcept {
  History& history = session.history;
  if (!session.kv.edited() || !history.replayable) return;
  const KvInputs added = session.inputs().subspan(first, session.kv.length() - first);
  if (history.tokens.size() + added.size() <= kHistoryContexts * session.kv.capacity()) {
    try {
      history.tokens.insert(history.tokens.end(), added.tokens.begin(), added.tokens.end());
      history.contents.insert(history.contents.end(), added.contents.begin(), added.contents.end());
      return;
    } catch (const std::bad_alloc&) {  // the history is dropped below
    }
  }
  history.give_up();
}

void commit_left(Session::State& session, std::size_t position, Reserved beyond) noexcept {
  const std::size_t first = session.kv.length();
  session.kv.commit(position, session.inputs(), beyond);
  if (position == first) return;
  session.has_last = false;
  note_computed(session, first);
}

Status uncompute_last(Session::State& session) noexcept {
  const std::size_t length = session.kv.length();
  // The last token becomes pending again. Recurrent layers can only go back to a checkpoint, or to the beginning of the sequence. So with
  // recurrent layers it must be possible to compute all tokens again.
  const std::size_t first = session.kv.layout().has_state() ? 0 : length - 1;
  if (!can_recompute(session, first)) {
    return make_error(ErrorCode::invalid_state,
                      "the logits after the last token are not known (they were not asked for, or the session was truncated), "
                      "and the session's embeddings, which would have to be computed again, are not kept: append a token first, or give the "
                      "session a function that returns embeddings by their hashes");
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
  // If the truncation removes a token of an adapter's invocation, the adapter is no longer active. But it has changed the rows from the
  // invocation's first token on. So the tokens from there on must be computed again, without the adapter.
  const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(position, session.adapters.first_cut(position)));
  if (session.kv.edited() && kept < length) note_removal(session, kept, length);
  // The last page that stays may have been offered (prefix index) while it was full, so another sequence may use this page.
  if (kept < length) session.shares_last_page = true;
  session.kv.truncate(kept);
  session.votes.truncate(kept, session.removed);
  session.keep_tokens(position);
  // The cache may now be shorter than `position`: the pages that the last window needs may be freed already, or recurrent layers went
  // back to their last checkpoint. The tokens that the cache lacks become pending. If they cannot be computed again, the session is
  // cleared.
  if (session.kv.length() < position && session.kv.length() < length && !can_recompute(session, session.kv.length())) {
    session.kv.clear();
    session.keep_tokens(0);
  }
  session.has_last = false;
  session.logits.drop_excess(session.vocab());
  session.next_logits.drop_excess(session.vocab());
  if (session.kv.length() == 0) {
    session.forget_rows();
    session.removed = 0;
  }
  if (tokens.empty()) session.last_layer = 0;
}

Status use_adapters(Session::State& session, SequenceAdapters adapters) noexcept {
  const std::uint64_t length = session.kv.length(), first = session.adapters.first_difference(adapters);
  if (first < length) {
    if (session.kv.edited()) {
      return make_error(ErrorCode::invalid_state,
                        "the session is edited, and its tokens from position {} on would have to be computed again with the new adapters: "
                        "truncate it to {} tokens first, or make a new session",
                        first, first);
    }
    if (!can_recompute(session, 0)) {  // the cache may have to go back to a position before `first`
      return make_error(ErrorCode::unsupported,
                        "the session has embeddings, which are not kept, and its tokens from position {} on would have to be computed again "
                        "with the new adapters: make a new session, or give it a function that returns embeddings by their hashes",
                        first);
    }
    session.shares_last_page = true;
    session.kv.truncate(first);
    session.votes.truncate(session.kv.length(), session.removed);
    session.logits.drop_excess(session.vocab());
    session.next_logits.drop_excess(session.vocab());
    if (session.kv.length() == 0) session.forget_rows();
  }
  if (first < session.tokens.size()) session.has_last = false;
  session.adapters = std::move(adapters);
  return {};
}

const SequenceAdapters& adapters_of(const Session::State& session) noexcept { return session.adapters; }

void release_adapters(Session::State& session) noexcept {
  session.adapters.release();
  // If an active adapter's invocation is incomplete, the adapter waits again. But it has changed the rows from the invocation's first
  // token on. So the tokens from there on become pending, and are computed again without the adapter.
  const std::size_t length = session.kv.length(), kept = std::min<std::uint64_t>(length, session.adapters.first_cut(session.tokens.size()));
  if (kept < length) {
    if (session.kv.edited()) note_removal(session, kept, length);
    session.shares_last_page = true;
    session.kv.truncate(kept);
    session.votes.truncate(kept, session.removed);
    session.has_last = false;
    if (!can_recompute(session, session.kv.length())) {
      session.kv.clear();
      session.keep_tokens(0);
    }
    if (session.kv.length() == 0) session.forget_rows();
  }
  session.adapters.truncate(session.tokens.size());
}

bool can_give_pages_up(const Session::State& session) noexcept {
  return can_recompute(session, 0) && !session.kv.edited() && !session.drop_is_due && !is_to_be_cut(session);
}

void give_pages_up(Session::State& session) noexcept {
  session.kv.truncate(0);
  session.has_last = false;
  session.forget_rows();
}

Status check_movable(const ModelSpec& spec, std::string_view so) {
  if (spec.positions == Positions::learned) {
    return make_error(ErrorCode::unsupported, "{} has learned positions: {}", spec.architecture, so);
  }
  if (const DraftHeads* heads = draft_heads_of(spec)) {
    return make_error(ErrorCode::unsupported, "the engine has {}s, whose {}: {}", heads->name,
                      heads->kept == HiddenKept::as_state ? "state knows all tokens" : "hidden states do not move with tokens", so);
  }
  if (std::ranges::any_of(spec.layers, &LayerSpec::is_recurrent)) {
    return make_error(ErrorCode::unsupported, "{} has recurrent layers, whose state knows all tokens: {}", spec.architecture, so);
  }
  if (norms_rotated_keys(spec)) {
    return make_error(ErrorCode::unsupported, "{} norms keys behind their rotation: {}", spec.architecture, so);
  }
  return {};
}

namespace {

// Moves the computed tokens between and after the removed `runs` toward the front, so that the gaps close. `length`: number of computed
// tokens before the removal. `first`: for each group of layers, the position before which tokens stay in place (MoveDescription::first).
// Each key is moved only once, also if there are several runs. `move` is memory for the description: it has enough room already, so
// nothing here throws.
Status move_up(Session::State& session, std::span<const kv::TokenRun> runs, std::size_t length, std::span<const std::uint64_t> first,
               MoveDescription& move) {
  const Engine::State& engine = *session.shared;
  move.first.assign(first.begin(), first.end());
  move.pages.clear();
  describe_pages(session.kv, *engine.kv_pools, move.pages);
  std::uint64_t to = runs.front().first;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint64_t from = runs[i].last, end = i + 1 < runs.size() ? runs[i + 1].first : length;
    if (from == end) continue;
    move.from = from;
    move.to = to;
    move.count = end - from;
    take_copies(*engine.kv_pools, move.copies);
    const Status moved = engine.steps->move(move);
    if (!moved && i > 0) {  // a device failed after tokens were overwritten: only the tokens before the first run remain
      truncate(session, static_cast<std::size_t>(runs.front().first));
      session.history.give_up();
    }
    TESSERA_TRY_STATUS(moved);
    to += end - from;
  }
  return {};
}

}  // namespace

Status remove(Session::State& session, std::size_t first, std::size_t last) {
  const std::size_t length = session.kv.length();
  if (first > last || last > length) {
    return make_error(ErrorCode::invalid_argument,
                      "cannot remove tokens {} to {}: the session has {} computed tokens. Choose a range within them", first, last, length);
  }
  if (first == last) return {};
  if (last == length) {  // no computed token follows the removed tokens, so none moves: a truncation that keeps the pending tokens
    const std::vector<Token> pending(session.pending().begin(), session.pending().end());
    const KvInputs behind = session.inputs().subspan(length, pending.size());
    const std::vector<Hash128> contents(behind.contents.begin(), behind.contents.end());
    const std::uint32_t last_layer = session.last_layer;
    truncate(session, first);
    session.contents.insert(session.contents.end(), contents.begin(), contents.end());
    session.tokens.insert(session.tokens.end(), pending.begin(), pending.end());
    if (!pending.empty()) session.last_layer = last_layer;
    return {};
  }
  const kv::TokenRun run{first, last};
  return remove(session, {&run, 1});
}

Status remove(Session::State& session, std::span<const kv::TokenRun> runs) {
  if (runs.empty()) return {};
  const std::size_t length = session.kv.length();
  std::size_t n = 0;  // tokens to remove
  for (const kv::TokenRun& run : runs) n += static_cast<std::size_t>(run.last - run.first);
  const Model& model = session.shared->model;
  TESSERA_TRY_STATUS(check_movable(model.spec, "none of its tokens can be taken out. Truncate, and append what is to stay"));
  const FpState fp_state;
  History begun;  // made only for the session's first edit
  if (!session.kv.edited()) {
    const KvInputs computed = session.inputs().first(length);
    begun.replayable = session.first_layer == 0 && session.last_layer == model.spec.n_layers();
    if (begun.replayable) {
      begun.tokens.assign(computed.tokens.begin(), computed.tokens.end());
      begun.contents.assign(computed.contents.begin(), computed.contents.end());
    }
  }
  History& history = session.kv.edited() ? session.history : begun;
  if (history.replayable) history.removals.reserve(history.removals.size() + runs.size());
  const bool is_first = !session.kv.edited();
  // The pages are described before begin_removal(), so that all memory for their description is allocated before anything changes.
  // begin_removal() may replace pages by copies. So move_up() describes the pages again, which needs no more memory than the first time.
  const Engine::State& engine = *session.shared;
  const Turn turn(engine.queue, {});
  MoveDescription move;
  move.first.reserve(session.kv.layout().groups.size());
  describe_pages(session.kv, *engine.kv_pools, move.pages);
  TESSERA_TRY_STATUS(engine.steps->reserve(move.pages));
  TESSERA_TRY(const KvRemoval removal, session.kv.begin_removal(runs.front().first, runs.back().last, n));
  if (is_first) session.history = std::move(begun);  // from now on the cache counts as edited, even if the move fails
  TESSERA_TRY_STATUS(move_up(session, runs, length, removal.from, move));
  session.kv.end_removal(removal);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    session.erase_tokens(static_cast<std::size_t>(run->first), static_cast<std::size_t>(run->last));
  }
  session.removed += n;
  session.votes.remove(runs);
  note_removals(session, runs);
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
