#include "engine/run/append.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "core/seconds.hpp"
#include "engine/run/log_probs.hpp"
#include "engine/run/streams.hpp"
#include "engine/session/edit.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

namespace {

using Clock = std::chrono::steady_clock;

// Marks the rows whose logits the caller wants (AppendOptions::rows or ::logits), and returns the number of these rows. `rows` are the
// rows of the session's part: first `pending` rows of pending tokens, then the rows of the tokens that the caller appends. Error:
// invalid_argument, the options name a row that does not exist, or an undefined kind of logits.
Result<std::size_t> mark_wanted(std::span<RunRow> rows, std::size_t pending, const AppendOptions& options) {
  const std::size_t n_tokens = rows.size() - pending;
  if (!options.rows.empty()) {
    std::size_t next = 0;
    for (const std::size_t row : options.rows) {
      if (row >= n_tokens || row < next) {
        return make_error(ErrorCode::invalid_argument, "logits of row {}: rows ascend and end before {}", row, n_tokens);
      }
      rows[pending + row].output = RowOutput::logits;
      next = row + 1;
    }
    return options.rows.size();
  }
  if (options.logits == LogitsOf::none) return std::size_t{0};
  if (options.logits != LogitsOf::last && options.logits != LogitsOf::all) {
    return make_error(ErrorCode::invalid_argument, "logits of kind {}; choose last, all or none", static_cast<int>(options.logits));
  }
  // If the caller appends no tokens, LogitsOf::all means the logits of the last pending token only.
  const std::size_t from = options.logits == LogitsOf::last || n_tokens == 0 ? rows.size() - 1 : pending;
  for (RunRow& row : rows.subspan(from)) row.output = RowOutput::logits;
  return rows.size() - from;
}

// Begins the session's part of the run, and returns the part's index. The part's rows are the session's pending tokens, then `tokens`. A
// token -1 stands for an embedding: the next element of `embeddings`.
std::size_t begin_tokens(Run& run, Session::State& session, std::span<const Token> tokens, std::span<const float* const> embeddings = {}) {
  const std::size_t part = run.begin_part(session);
  for (auto next = embeddings.begin(); const Token token : tokens) {
    run.add({.token = token, .embedding = token < 0 && next != embeddings.end() ? *next++ : nullptr});
  }
  return part;
}

// Returns the known logits, for a call that appends nothing when nothing is pending. nullopt: the last token must be computed again.
Result<std::optional<Logits>> known_logits(Session::State& session, const AppendOptions& options) {
  if (!options.rows.empty()) {
    return make_error(ErrorCode::invalid_argument, "logits of row {}: there are no tokens to append", options.rows[0]);
  }
  if (options.logits == LogitsOf::none) return std::optional<Logits>(Logits{.values = {}, .vocab = session.vocab()});
  if (session.knows_logits()) {
    return std::optional<Logits>(Logits{.values = session.last_logits(), .vocab = session.vocab()});
  }
  return std::optional<Logits>();
}

}  // namespace

Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options,
                      std::span<const float* const> embeddings) {
  const FpState fp_state;
  const auto start = Clock::now();
  const std::size_t vocab = session.vocab();
  Run run(*session.shared, all_layers(*session.shared, options.stop));
  run.set_progress(options.progress);
  const bool wants_logits = options.logits != LogitsOf::none || !options.rows.empty();
  if (wants_logits && !session.shared->model.spec.has_logits) return no_logits(session.shared->model.spec);
  if (tokens.empty() && !session.has_pending()) {
    if (session.tokens.empty()) {
      return make_error(ErrorCode::invalid_argument, "there are no tokens to append, and the session has none");
    }
    TESSERA_TRY(const auto known, known_logits(session, options));
    if (known) return *known;
    TESSERA_TRY_STATUS(run.check_range(session));
    TESSERA_TRY_STATUS(uncompute_last(session));
  }
  const std::size_t pending = session.pending().size();
  const std::size_t part = begin_tokens(run, session, tokens, embeddings);
  TESSERA_TRY(const std::size_t wanted, mark_wanted(run.rows(part), pending, options));
  TESSERA_TRY_STATUS(run.check(part));
  const std::uint64_t end = length_after_cut(session) + run.rows(part).size();
  if (end > session.kv.capacity()) return session.kv.reserve(end).error();  // before memory for logits is allocated
  if (wanted > 0) {
    TESSERA_TRY_STATUS(session.next_logits.ensure(*session.shared->options.memory, wanted, vocab));
    float* to = session.next_logits.values().data();
    for (RunRow& row : run.rows(part)) {
      if (row.output == RowOutput::logits) row.to = std::exchange(to, to + vocab);
    }
  }
  const bool has_last = run.rows(part).back().output == RowOutput::logits;
  Status status = make_ready(run, part);
  if (status) {
    run.compute();
    status = run.outcome(part);
  }
  if (!status) {
    session.next_logits.drop_excess(vocab);
    return std::move(status).error();
  }
  after_commit(run, part);
  if (wanted > 0) std::swap(session.logits, session.next_logits);
  session.logits_rows = wanted;
  session.has_last = has_last;
  session.prompt_tokens += pending + tokens.size();
  session.prompt_seconds += seconds_since(start);
  return Logits{.values = session.logits.values().first(wanted * vocab), .vocab = vocab};
}

Result<std::vector<float>> score(Session::State& session, std::span<const Token> tokens, const AppendOptions& options) {
  const FpState fp_state;
  const auto start = Clock::now();
  const std::size_t vocab = session.vocab();
  if (tokens.empty()) return make_error(ErrorCode::invalid_argument, "there are no tokens to score");
  Run run(*session.shared, all_layers(*session.shared, options.stop));
  const std::size_t pending = session.pending().size();
  const std::size_t part = begin_tokens(run, session, tokens);
  TESSERA_TRY_STATUS(run.check(part));
  std::vector<float> scores;
  scores.reserve(tokens.size());
  const bool knows_before = session.knows_logits();
  if (pending == 0 && !knows_before && session.kv.length() > 0) {
    return make_error(ErrorCode::invalid_state,
                      "the logits after the last token are not known (they were not asked for, or the session was "
                      "truncated): call append({{}}) first, which computes them");
  }
  // A token's score comes from the logits of the row before the token. So all rows of the new tokens want logits, and also the last
  // pending row: it gives the score of tokens[0]. All these rows write their logits to the same memory, one after another. `done` (below)
  // reads a row's logits before the next row overwrites them.
  TESSERA_TRY_STATUS(session.next_logits.ensure(*session.shared->options.memory, 1, vocab));
  const std::span<float> row = session.next_logits.values().first(vocab);
  for (RunRow& wanted : run.rows(part).subspan(pending > 0 ? pending - 1 : 0)) {
    wanted.output = RowOutput::logits;
    wanted.to = row.data();
  }
  Status scored;
  const auto add = [&](std::span<const float> logits, Token next) {
    if (!scored) return;
    const auto log_sum = log_sum_exp(logits);
    if (!log_sum) {
      scored = log_sum.error();
    } else {
      scores.push_back(static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(next)]) - *log_sum));
    }
  };
  // Without pending tokens, no row of the run computes the first token's score: the row before that token is already computed.
  if (pending == 0) {
    if (knows_before) {
      add(session.last_logits(), tokens[0]);
    } else {
      scores.push_back(std::numeric_limits<float>::quiet_NaN());
    }
  }
  const auto done = [&](std::size_t i) {
    if (i + 1 < run.rows(part).size()) add(row, run.rows(part)[i + 1].token);
  };
  // If no score can be computed from a row's logits, the run is stopped, and undoes its rows.
  const auto progress = [&](std::size_t at, std::size_t total) {
    return scored.has_value() && (!options.progress || options.progress(at, total));
  };
  const std::function<void(std::size_t)> on_done = std::ref(done);
  const std::function<bool(std::size_t, std::size_t)> on_progress = std::ref(progress);
  run.set_done(on_done);
  run.set_progress(on_progress);
  TESSERA_TRY_STATUS(make_ready(run, part));
  run.compute();
  TESSERA_TRY_STATUS(scored);
  TESSERA_TRY_STATUS(run.outcome(part));
  after_commit(run, part);
  std::swap(session.logits, session.next_logits);
  session.logits_rows = 1;
  session.has_last = true;
  session.prompt_tokens += pending + tokens.size();
  session.prompt_seconds += seconds_since(start);
  return scores;
}

}  // namespace tessera::detail
