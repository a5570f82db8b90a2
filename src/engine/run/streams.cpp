#include "engine/run/streams.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

bool is_to_be_cut(const Session::State& session) noexcept {
  return session.stream.window != 0 && session.kv.length() >= session.kv.capacity();
}

std::uint64_t length_after_cut(const Session::State& session) noexcept {
  const std::uint64_t length = session.kv.length(), left = std::uint64_t{session.stream.sinks} + session.stream.window;
  return is_to_be_cut(session) ? std::min(length, left) : length;
}

Status cut_if_full(Session::State& session) noexcept {
  if (!is_to_be_cut(session)) return {};
  return guard([&] { return keep_window(session, session.stream.sinks, session.stream.window); });
}

namespace {

// Prepares the part (Run::prepare()). If an adapter of the session waits for its invocation (the tokens that activate it), first looks
// for the invocation among the tokens that the part adds to the session, because the adapter changes the rows from the invocation on.
// Does not search drafts, because they may be rejected. Does not search pending tokens either, because drawn tokens are pending: a drawn
// token must have the same effect whether it was a draft before or not.
Status prepare(Run& run, std::size_t part) noexcept {
  Session::State& session = *run.part(part).session;
  if (!session.adapters.wait_for_invocation() || run.part(part).ahead != 0) return run.prepare(part);
  Status status = guard([&] {
    const auto rows = std::as_const(run).rows(part);
    const auto added = rows.subspan(std::min(session.pending().size(), rows.size()));
    std::vector<Token> tokens;
    for (const RunRow& row : added.first(added.size() - run.part(part).drafts)) tokens.push_back(row.embedding != nullptr ? -1 : row.token);
    session.adapters.invoke(tokens, session.tokens.size());
    return Status();
  });
  if (!status) run.fail(part, status.error());
  if (status) status = run.prepare(part);
  if (!status) session.adapters.truncate(session.tokens.size());
  return status;
}

}  // namespace

Status make_ready(Run& run, std::size_t part) noexcept {
  Status status = run.check(part);
  if (status) status = cut_if_full(*run.part(part).session);
  if (status) status = drop_if_due(*run.part(part).session);
  if (!status) {
    run.fail(part, status.error());
    return status;
  }
  return prepare(run, part);
}

void after_commit(Run& run, std::size_t part) noexcept {
  run.commit(part);
  (void)cut_if_full(*run.part(part).session);
  (void)drop_if_over(*run.part(part).session);
}

}  // namespace tessera::detail
