#include "engine/run_batch.hpp"

#include <algorithm>

#include "support/error.hpp"

namespace tessera::detail {

namespace {

struct Sequence {
  Session::State* session;
  std::uint64_t end;           // its length when all rows are in
  std::size_t new_tokens = 0;  // rows that are not its pending token
};

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
  if (row.output == RowOutput::logits && options.last_layer != engine.model.spec.n_layers()) {
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

// One step's rows in the backend's terms.
struct StepBuilder {
  explicit StepBuilder(std::size_t rows) {
    tables.reserve(rows);
    outputs.reserve(rows);
    views.reserve(rows);
    members.reserve(rows);
  }

  void clear() noexcept {
    tables.clear();
    outputs.clear();
    views.clear();
    members.clear();
  }

  void add(const RunRow& row, std::uint64_t position) {
    const auto found = std::find(members.rbegin(), members.rend(), row.session);
    auto index = static_cast<std::size_t>(members.rend() - found);
    if (found == members.rend()) {
      members.push_back(row.session);
      views.push_back(row.session->kv.view());
      index = members.size();
    }
    tables.push_back({.embedding = row.embedding,
                      .token = row.token,
                      .sequence = static_cast<std::uint32_t>(index - 1),
                      .position = position});
    outputs.push_back(row.output);
  }

  std::vector<backend::RowTable> tables;
  std::vector<RowOutput> outputs;
  std::vector<KvView> views;
  std::vector<Session::State*> members;  // the sessions of `views`
};

// Says rows of the batch where forward() counts rows of a step.
class OffsetSink final : public OutputSink {
 public:
  OffsetSink(OutputSink& to, std::size_t offset) noexcept : to_(to), offset_(offset) {}
  std::span<float> destination(std::size_t row) override { return to_.destination(offset_ + row); }
  void done(std::size_t row) override { to_.done(offset_ + row); }

 private:
  OutputSink& to_;
  std::size_t offset_;
};

class Turn {
 public:
  Turn(FairQueue& queue, const std::stop_token& stop) : queue_(queue), mine_(queue.enter(stop)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (mine_) queue_.leave();
  }
  [[nodiscard]] bool mine() const noexcept { return mine_; }

 private:
  FairQueue& queue_;
  bool mine_;
};

Status run_steps(const Engine::State& engine, std::span<const RunRow> rows, const RunOptions& options,
                 std::span<const std::uint64_t> positions, OutputSink& sink) {
  const std::size_t step_rows = engine.options.step_rows;
  StepBuilder step(std::min(step_rows, rows.size()));
  for (std::size_t first = 0; first < rows.size(); first += step_rows) {
    const std::size_t count = std::min(step_rows, rows.size() - first);
    step.clear();
    for (std::size_t i = first; i < first + count; ++i) step.add(rows[i], positions[i]);
    OffsetSink shifted(sink, first);
    {
      const Turn turn(engine.queue, options.stop);
      if (!turn.mine()) return make_error(ErrorCode::cancelled, "stopped while waiting; the session is as it was");
      TESSERA_TRY_STATUS(forward(engine.model, *engine.backend,
                                 {.rows = step.tables,
                                  .sequences = step.views,
                                  .outputs = step.outputs,
                                  .first_layer = options.first_layer,
                                  .last_layer = options.last_layer},
                                 shifted, options.stop));
    }
    if (options.progress && !options.progress(first + count, rows.size())) {
      return make_error(ErrorCode::cancelled, "the progress callback stopped after {} of {} tokens; the session is as it was",
                        first + count, rows.size());
    }
  }
  return {};
}

}  // namespace

Status run_batch(const Engine::State& engine, std::span<const RunRow> rows, const RunOptions& options, OutputSink& sink) {
  std::vector<Sequence> sequences;
  std::vector<std::uint64_t> positions;
  positions.reserve(rows.size());
  for (const RunRow& row : rows) {
    TESSERA_TRY_STATUS(check_row(engine, row, options));
    auto at = std::find_if(sequences.begin(), sequences.end(), [&](const Sequence& s) { return s.session == row.session; });
    if (at == sequences.end()) {
      sequences.push_back({.session = row.session, .end = row.session->kv.length()});
      at = sequences.end() - 1;
    }
    positions.push_back(at->end++);
    if (!row.is_pending) ++at->new_tokens;
  }
  // Everything that can fail for want of memory comes before anything that lasts.
  for (Sequence& s : sequences) s.session->reserve_tokens(s.session->tokens.size() + s.new_tokens);
  const Status status = guard([&]() -> Status {
    for (Sequence& s : sequences) TESSERA_TRY_STATUS(s.session->kv.reserve(s.end));
    return run_steps(engine, rows, options, positions, sink);
  }, ErrorCode::callback_failed);  // the progress callback and a host's sink are all that throws anything of its own
  if (!status) {
    for (Sequence& s : sequences) s.session->kv.commit(s.session->kv.length());
    return status;
  }
  for (Sequence& s : sequences) {
    s.session->kv.commit(s.end);
    s.session->first_layer = options.first_layer;
    s.session->last_layer = options.last_layer;
  }
  for (const RunRow& row : rows) {
    if (!row.is_pending) row.session->tokens.push_back(row.embedding != nullptr ? -1 : row.token);
  }
  return {};
}

}  // namespace tessera::detail
