#include "engine/run_batch.hpp"

#include <algorithm>

#include "engine/edit.hpp"
#include "support/error.hpp"

namespace tessera::detail {

namespace {

Sequence& sequence_of(std::vector<Sequence>& sequences, Session::State* session) {
  const auto at = std::ranges::find(sequences, session, &Sequence::session);
  if (at != sequences.end()) return *at;
  const std::uint64_t length = session->kv.length();
  return sequences.emplace_back(Sequence{.session = session, .begin = length, .end = length});
}

bool whole_model(const Engine::State& engine, const RunOptions& options) {
  return options.first_layer == 0 && options.last_layer == engine.model.spec.n_layers();
}

// Takes from the prefix index what it has of each sequence's first rows: tokens of which nothing is wanted. At least
// one row of a sequence is computed.
void adopt_prefixes(RunLists& lists, std::span<const RunRow> rows) {
  std::vector<Token>& tokens = lists.prefix;
  for (Sequence& s : lists.sequences) {
    tokens.clear();
    for (const RunRow& row : rows) {
      if (row.session != s.session) continue;
      if (row.embedding != nullptr || row.output != RowOutput::nothing || tokens.size() + 1 == s.end - s.begin) break;
      tokens.push_back(row.token);
    }
    s.adopted = s.session->kv.adopt(tokens);
  }
}

// The rows that are to be computed, with their positions.
void schedule(RunLists& lists, std::span<const RunRow> rows) {
  std::vector<Sequence>& sequences = lists.sequences;
  lists.scheduled.reserve(rows.size());
  for (Sequence& s : sequences) s.next = s.begin;
  Sequence* s = sequences.data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (s->session != rows[i].session) s = &*std::ranges::find(sequences, rows[i].session, &Sequence::session);
    const std::uint64_t position = s->next++;
    if (position >= s->begin + s->adopted) lists.scheduled.push_back({.row = i, .position = position});
  }
}

Status check_row(const Engine::State& engine, const RunRow& row, const RunOptions& options) {
  if (row.session->shared.get() != &engine) {
    return make_error(ErrorCode::invalid_argument, "a row's session belongs to another engine");
  }
  const std::uint32_t vocab = engine.model.spec.vocab_size;
  if (row.embedding == nullptr && (row.token < 0 || static_cast<std::uint32_t>(row.token) >= vocab)) {
    return make_error(ErrorCode::invalid_argument, "token {} is not in the vocabulary of {}", row.token, vocab);
  }
  if (row.embedding == nullptr && options.first_layer != 0) {
    return make_error(ErrorCode::invalid_argument, "rows that enter at layer {} must be embeddings", options.first_layer);
  }
  const bool needs_head = row.output == RowOutput::logits || row.output == RowOutput::token;
  if (needs_head && options.last_layer != engine.model.spec.n_layers()) {
    return make_error(ErrorCode::invalid_argument, "logits need all {} layers; want the hidden state",
                      engine.model.spec.n_layers());
  }
  const Session::State& session = *row.session;
  if (session.last_layer != 0 &&
      (session.first_layer != options.first_layer || session.last_layer != options.last_layer)) {
    return make_error(ErrorCode::invalid_state, "this session holds layers {} to {}, not {} to {}; make another for those",
                      session.first_layer, session.last_layer, options.first_layer, options.last_layer);
  }
  return {};
}

void add_to_step(RunLists& step, const RunRow& row, std::uint64_t position) {
  const auto found = std::find(step.members.rbegin(), step.members.rend(), row.session);
  auto index = static_cast<std::size_t>(step.members.rend() - found);
  if (found == step.members.rend()) {
    step.members.push_back(row.session);
    step.views.push_back(row.session->kv.view());
    index = step.members.size();
  }
  step.tables.push_back({.embedding = row.embedding,
                         .token = row.token,
                         .sequence = static_cast<std::uint32_t>(index - 1),
                         .position = position});
  if (row.output != RowOutput::nothing) step.wanted.push_back(static_cast<std::uint32_t>(step.outputs.size()));
  step.outputs.push_back(row.output);
}

// Says rows of the batch where forward() counts rows of a step.
class StepSink final : public OutputSink {
 public:
  StepSink(OutputSink& to, std::span<const ScheduledRow> rows) noexcept : to_(to), rows_(rows) {}
  std::span<float> destination(std::size_t row) override { return to_.destination(rows_[row].row); }
  void done(std::size_t row) override { to_.done(rows_[row].row); }
  backend::SampleRow draw(std::size_t row) override { return to_.draw(rows_[row].row); }
  void drawn(std::size_t row, Token token) override { to_.drawn(rows_[row].row, token); }

 private:
  OutputSink& to_;
  std::span<const ScheduledRow> rows_;
};

Status run_steps(const Engine::State& engine, std::span<const RunRow> rows, const RunOptions& options,
                 RunLists& step, OutputSink& sink) {
  const std::span<const ScheduledRow> scheduled = step.scheduled;
  const std::size_t step_rows = engine.options.step_rows;
  const std::size_t skipped = rows.size() - scheduled.size();
  const std::size_t most = std::min(step_rows, scheduled.size());
  step.tables.reserve(most);
  step.outputs.reserve(most);
  step.wanted.reserve(most);
  step.views.reserve(most);
  step.members.reserve(most);
  for (std::size_t first = 0; first < scheduled.size(); first += step_rows) {
    const auto part = scheduled.subspan(first, std::min(step_rows, scheduled.size() - first));
    step.clear_step();
    for (const ScheduledRow& at : part) add_to_step(step, rows[at.row], at.position);
    StepSink step_sink(sink, part);
    {
      const Turn turn(engine.queue, options.stop);
      if (!turn.mine()) return make_error(ErrorCode::cancelled, "stopped while waiting; the session is as it was");
      TESSERA_TRY_STATUS(forward(engine.model, *engine.backend,
                                 {.rows = step.tables,
                                  .sequences = step.views,
                                  .outputs = step.outputs,
                                  .wanted = step.wanted,
                                  .first_layer = options.first_layer,
                                  .last_layer = options.last_layer},
                                 step_sink, options.stop));
    }
    const std::size_t done = skipped + first + part.size();
    if (options.progress && !options.progress(done, rows.size())) {
      return make_error(ErrorCode::cancelled, "the progress callback stopped after {} of {} tokens; the session is as it was",
                        done, rows.size());
    }
  }
  return {};
}

}  // namespace

Status run_batch(const Engine::State& engine, std::span<const RunRow> rows, const RunOptions& options, OutputSink& sink) {
  Recycled<RunLists>::Lease lists(engine.run_lists);
  std::vector<Sequence>& sequences = lists->sequences;
  for (const RunRow& row : rows) TESSERA_TRY_STATUS(check_row(engine, row, options));
  if (options.stop.stop_requested()) {
    return make_error(ErrorCode::cancelled, "stopped before the first layer; the session is as it was");
  }
  const Session::State* last = nullptr;
  for (const RunRow& row : rows) {
    if (row.session != last) TESSERA_TRY_STATUS(cut_if_full(*row.session));
    last = row.session;
  }
  for (const RunRow& row : rows) {
    Sequence& s = sequence_of(sequences, row.session);
    ++s.end;
    if (!row.is_pending) ++s.new_tokens;
  }
  // Everything that can fail for want of memory comes before anything that lasts.
  for (Sequence& s : sequences) s.session->reserve_tokens(s.session->tokens.size() + s.new_tokens);
  const Status status = guard([&]() -> Status {
    if (whole_model(engine, options)) adopt_prefixes(*lists, rows);
    for (Sequence& s : sequences) TESSERA_TRY_STATUS(s.session->kv.reserve(s.end));
    schedule(*lists, rows);
    return run_steps(engine, rows, options, *lists, sink);
  }, ErrorCode::callback_failed);  // the progress callback and a host's sink are all that throws anything of its own
  if (!status) {
    for (Sequence& s : sequences) {
      s.session->kv.truncate(s.begin);           // what was adopted
      s.session->kv.commit(s.session->kv.length());  // what was reserved
    }
    return status;
  }
  for (const RunRow& row : rows) {
    if (!row.is_pending) row.session->tokens.push_back(row.embedding != nullptr ? -1 : row.token);
  }
  for (Sequence& s : sequences) {
    Session::State& session = *s.session;
    session.kv.commit(s.end, whole_model(engine, options) ? std::span<const Token>(session.tokens) : std::span<const Token>());
    session.first_layer = options.first_layer;
    session.last_layer = options.last_layer;
    session.reused += s.adopted;
    note_computed(session, s.begin);
    if (options.cuts) (void)cut_if_full(session);
  }
  return {};
}

}  // namespace tessera::detail
