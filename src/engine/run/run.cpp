#include "engine/run/run.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/adapters/adapter_state.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/states.hpp"
#include "model/step/step_executor.hpp"

namespace tessera::detail {

using Phase = Part::Phase;

RunOptions all_layers(const Engine::State& engine, const std::stop_token& stop) {
  return {.first_layer = 0, .last_layer = engine.model.spec.n_layers(), .stop = stop};
}

// Receives a step's outputs. Translates rows of the step to rows of the run, and draws the tokens that the backend does not draw.
class Run::Sink final : public OutputSink {
 public:
  explicit Sink(Run& run) noexcept : run_(run), lists_(*run.lists_) {}

  std::span<float> destination(std::size_t i) override {
    const RunRow& row = row_of(i);
    const ModelSpec& spec = run_.engine_.model.spec;
    if (row.output == RowOutput::token) return lists_.draws.destination();
    return {row.to, output_size(row.output, spec)};
  }
  void done(std::size_t i) override {
    const StepRow at = lists_.step[i];
    RunRow& row = lists_.rows[at.row];
    if (row.output == RowOutput::token) {
      lists_.draws.add(*row.draw, history(at), position(at));
    } else if (run_.done_ != nullptr) {
      (*run_.done_)(at.row);
    }
  }
  void drawn(std::size_t i, Result<Token> token) override {
    Draw& draw = *row_of(i).draw;
    const std::size_t vocab = run_.engine_.model.spec.vocab_size;
    if (!token) {
      draw.status = std::move(token).error();
    } else if (*token < 0 || static_cast<std::size_t>(*token) >= vocab) {
      draw.status = make_error(ErrorCode::internal, "backend {} drew token {} of a vocabulary of {}",
                               run_.engine_.backend->name(), *token, vocab);
    } else {
      draw.piece = {.token = *token};
    }
  }
  std::span<std::uint64_t> votes(std::size_t i) override { return lists_.parts[lists_.step[i].part].session->votes.open; }

 private:
  [[nodiscard]] RunRow& row_of(std::size_t i) noexcept { return lists_.rows[lists_.step[i].row]; }
  // Returns the session's tokens up to and including the row's own token.
  [[nodiscard]] std::span<const Token> history(StepRow at) const noexcept {
    const Part& part = lists_.parts[at.part];
    return std::span<const Token>(part.session->tokens).first(part.begin + (at.row - part.first) + 1);
  }
  [[nodiscard]] std::uint64_t position(StepRow at) const noexcept { return run_.draw_position(at); }

  Run& run_;
  RunLists& lists_;
};

// Returns the position of the token that is drawn after a row, counting also tokens that edits have removed. The sampler chooses its random
// number by this position.
std::uint64_t Run::draw_position(const StepRow& at) const noexcept {
  const Part& part = lists_->parts[at.part];
  return part.session->removed + part.begin + (at.row - part.first) + 1;
}

Run::Run(const Engine::State& engine, RunOptions options) noexcept
    : engine_(engine), options_(std::move(options)), lists_(engine.run_lists) {}

Run::~Run() {
  for (std::size_t part = 0; part < parts(); ++part) undo(part);
}

void Run::hold(std::size_t i) noexcept {
  Part& part = lists_->parts[i];
  part.phase = Phase::prepared;
  part.session->held_by = this;
  part.session->held_part = i;
}

// Closes a prepared or computed part, and releases its session from the run.
void Run::close(std::size_t i) noexcept {
  Part& part = lists_->parts[i];
  part.phase = Phase::closed;
  part.session->held_by = nullptr;
}

bool Run::whole_model() const noexcept {
  return options_.first_layer == 0 && options_.last_layer == engine_.model.spec.n_layers();
}

std::span<RunRow> Run::rows(std::size_t part) noexcept {
  return std::span(lists_->rows).subspan(lists_->parts[part].first, lists_->parts[part].rows);
}
std::span<const RunRow> Run::rows(std::size_t part) const noexcept {
  return std::span<const RunRow>(lists_->rows).subspan(lists_->parts[part].first, lists_->parts[part].rows);
}

std::size_t Run::begin_part(Session::State& session, const std::stop_token& stop, std::size_t most) {
  lists_->parts.push_back({.session = &session,
                           .first = lists_->rows.size(),
                           .begin = session.kv.length(),
                           .tokens = session.tokens.size(),
                           .stop = stop});
  const KvInputs pending = session.inputs().subspan(session.kv.length(), session.tokens.size() - session.kv.length());
  auto content = pending.contents.begin();
  for (const Token token : pending.tokens.first(std::min(most, pending.tokens.size()))) {
    add({.token = token, .embedding = token < 0 && content != pending.contents.end() ? find_embedding(session, *content++) : nullptr});
  }
  return parts() - 1;
}

std::size_t Run::begin_drafts(Session::State& session, std::uint64_t ahead) {
  lists_->parts.push_back({.session = &session,
                           .first = lists_->rows.size(),
                           .ahead = ahead,
                           .begin = session.kv.length() + ahead,
                           .tokens = session.tokens.size()});
  return parts() - 1;
}

std::size_t Run::begin_branch(Session::State& session, const KvCache& fork, std::uint64_t position, const std::stop_token& stop) {
  lists_->parts.push_back({.session = &session,
                           .first = lists_->rows.size(),
                           .begin = position,
                           .tokens = session.tokens.size(),
                           .branch = &fork,
                           .stop = stop,
                           .phase = Phase::prepared});
  return parts() - 1;
}

void Run::make_room(std::size_t parts, std::size_t rows) {
  lists_->parts.reserve(lists_->parts.size() + parts);
  lists_->rows.reserve(lists_->rows.size() + rows);
}

void Run::add(const RunRow& row) {
  lists_->rows.push_back(row);
  ++lists_->parts.back().rows;
}

void Run::add_draft(const RunRow& row) {
  add(row);
  ++lists_->parts.back().drafts;
}

// Marks the part's rows that vote: rows whose attention decides which tokens a token budget keeps. Returns whether the part has any.
bool Run::mark_voters(std::size_t i) noexcept {
  const Part& part = lists_->parts[i];
  if (!counts_attention(part.session->kv_options.budget)) return false;
  const std::size_t own = part.rows - part.drafts;
  const Voters voters(*part.session, part.begin + own + part.to_come);
  bool any = false;
  for (std::size_t row = 0; row < own; ++row) any |= rows(i)[row].votes = voters.has(part.begin + row);
  return any;
}

Status Run::prepare(std::size_t i) noexcept {
  Part& part = lists_->parts[i];
  Session::State& session = *part.session;
  part.begin = session.kv.length() + part.ahead;  // the session may have been cut since begin_part()
  part.tokens = session.tokens.size();
  hold(i);
  Status status = guard([&]() -> Status {
    std::vector<Token>& tokens = session.tokens;
    TESSERA_TRY_STATUS(check_pending(i));
    if (options_.keep == Keep::rows) session.votes.begin(part.begin + part.rows, mark_voters(i));
    if (part.ahead == 0) {
      session.reserve_tokens(part.begin + part.rows);
      for (const RunRow& row : rows(i).subspan(std::min<std::size_t>(part.rows, part.tokens - part.begin))) {
        if (row.embedding != nullptr) session.add_embedding({row.embedding, engine_.model.spec.d_model});
        else tokens.push_back(row.token);
      }
    }
    if (options_.keep == Keep::rows && whole_model()) {
      // Takes the pages of the part's first rows from the prefix index, if it has them, so that these rows need not be computed. Rows
      // from the first one with an output or votes on must be computed, so their pages are not taken. The part's last row is always
      // computed.
      std::size_t n = 0;
      const auto all = std::span<const RunRow>(rows(i));
      while (n + 1 < all.size() && all[n].output == RowOutput::nothing && !all[n].votes) ++n;
      part.adopted = session.kv.adopt(session.inputs().subspan(part.begin, n));
    }
    return session.kv.reserve(part.begin + part.rows, part.begin + part.rows - part.drafts);
  });
  if (!status) fail(i, status.error());
  return status;
}

// Adds the part's sequence, with its pages, to the step's description, and then a sequence for each branch of the part. So the indices of
// the branches follow the index of the part's own sequence directly, as DescribedRow::branches requires.
void Run::add_sequences(std::size_t i) {
  const Part& part = lists_->parts[i];
  for (const Part& one : std::span<const Part>(lists_->parts).subspan(i, 1 + part.branches)) {
    describe_pages(one.branch != nullptr ? *one.branch : one.session->kv, *engine_.kv_pools, lists_->description.pages);
  }
}

// Describes the next step: fills the description with rows of prepared parts, until the step is full. `at` is the place of the first row;
// it becomes the place of the first row that is left for the next step. A part fails here if a stop of this part was requested.
void Run::fill_step(Cursor& at) {
  RunLists& lists = *lists_;
  lists.clear_step();
  StepDescription& step = lists.description;
  step.first_layer = options_.first_layer;
  step.last_layer = options_.last_layer;
  std::size_t added = at.part, first_sequence = 0, first_added = 0;  // parts before `added` have their sequences in the step
  for (; at.part < lists.parts.size(); ++at.part, at.row = 0) {
    Part& part = lists.parts[at.part];
    if (part.phase != Phase::prepared) continue;
    if (part.stop.stop_requested()) {
      fail(at.part, make_error(ErrorCode::cancelled, "stopped; the session is as it was"));
      continue;
    }
    at.row = std::max<std::size_t>(at.row, part.adopted);
    const auto is_full = [&](const RunRow& next) {
      return lists.step.size() == engine_.options.step_rows || (next.votes && lists.voters == kMostVoters);
    };
    if (at.row == part.rows) continue;
    if (is_full(lists.rows[part.first + at.row])) return;
    const bool is_whole = engine_.model.spec.sight == Sight::both_sides;  // all rows of the part must be in one step
    if (is_whole && !lists.step.empty() && lists.step.size() + part.rows > engine_.options.step_rows) return;
    if (at.part >= added) {
      const std::size_t n = step.pages.sequences.size();
      if (!lists.step.empty() && n + part.branches >= engine_.options.step_rows) return;
      first_sequence = n;
      first_added = at.part;
      add_sequences(at.part);
      added = at.part + 1 + part.branches;
    }
    const auto sequence = static_cast<std::uint32_t>(first_sequence + (at.part - first_added));
    const SequenceAdapters& adapters = part.session->adapters;
    const auto first_adapter = static_cast<std::uint32_t>(step.adapters.size());
    for (const SequenceAdapters::One& one : adapters.list()) {
      step.adapters.push_back({.content = one.adapter.content(), .scale = one.scale});
      lists.adapters.push_back(&one.adapter.state()->weights);
    }
    for (; at.row < part.rows; ++at.row) {
      const RunRow& row = lists.rows[part.first + at.row];
      if (is_full(row)) return;
      lists.voters += row.votes ? 1 : 0;
      DescribedRow described{.sequence = sequence, .branches = row.also, .position = part.begin + at.row, .segment = row.segment, .votes = row.votes};
      if (!adapters.empty()) {
        described.first_adapter = first_adapter;
        described.n_adapters = adapters.active_at(described.position);
      }
      if (row.embedding == nullptr) {
        described.token = row.token;
      } else {
        described.embedding = static_cast<std::uint32_t>(lists.embeddings.size());
        lists.embeddings.push_back(row.embedding);
      }
      step.rows.push_back(described);
      lists.step.push_back({.row = part.first + at.row, .part = at.part});
    }
  }
}

bool draws_on_backend(const Engine::State& engine, const Sampler& sampler, std::uint32_t logprobs) noexcept {
  return engine.backend->samples() && logprobs == 0 && engine.tokenizer.suppressed().empty() && sampler.recipe();
}

// Describes the outputs of the step's rows. Returns the number of tokens that the backend does not draw (draws_on_backend()). The
// output of such a row becomes its logits, from which the token is drawn here.
std::size_t Run::describe_outputs() {
  RunLists& lists = *lists_;
  std::size_t host_draws = 0;
  for (std::uint32_t i = 0; i < lists.step.size(); ++i) {
    const RunRow& row = lists.rows[lists.step[i].row];
    RowOutput& output = lists.description.rows[i].output;
    output = row.output;
    if (output != RowOutput::token) continue;
    row.draw->status = {};
    if (draws_on_backend(engine_, *row.draw->sampler, row.draw->logprobs)) {
      const auto recipe = row.draw->sampler->recipe();
      lists.description.draws.push_back({.row = i, .steps = recipe->steps, .uniform = recipe->uniform(draw_position(lists.step[i]))});
    } else {
      output = RowOutput::logits;
      ++host_draws;
    }
  }
  return host_draws;
}

Status Run::compute_step() {
  RunLists& lists = *lists_;
  const std::size_t host_draws = describe_outputs();
  if (host_draws > 0) {
    TESSERA_TRY_STATUS(lists.draws.begin(*engine_.options.memory, *engine_.executor, host_draws, engine_.model.spec.vocab_size,
                                          engine_.tokenizer.suppressed()));
  }
  Sink sink(*this);
  {
    const Turn turn(engine_.queue, options_.stop);
    if (!turn.mine()) return make_error(ErrorCode::cancelled, "stopped while waiting; the session is as it was");
    take_copies(*engine_.kv_pools, lists.description.copies);
    TESSERA_TRY_STATUS(engine_.steps->execute(lists.description, {.embeddings = lists.embeddings, .adapters = lists.adapters}, sink, options_.stop));
  }
  if (host_draws > 0) lists.draws.finish();
  for (const StepRow& at : lists.step) {
    const RunRow& row = lists.rows[at.row];
    if (row.output == RowOutput::token && !row.draw->status) fail(at.part, row.draw->status.error());
  }
  return {};
}

// Fails all prepared parts from the cursor's part on. (A part whose rows are all computed is no longer in the phase `prepared`.)
void Run::fail_open(const Error& error, const Cursor& from) noexcept {
  for (std::size_t i = from.part; i < parts(); ++i) {
    if (lists_->parts[i].phase == Phase::prepared) fail(i, error);
  }
}

void Run::compute() noexcept {
  std::size_t total = 0, done = 0;
  for (const Part& part : lists_->parts) {
    if (part.phase != Phase::prepared) continue;
    total += part.rows;
    done += part.adopted;
  }
  Cursor cursor, before;
  const Status status = guard([&]() -> Status {
    const std::size_t most = std::min<std::size_t>(engine_.options.step_rows, total);
    lists_->step.reserve(most);
    lists_->description.rows.reserve(most);
    lists_->description.pages.sequences.reserve(parts());
    for (;;) {
      before = cursor;
      fill_step(cursor);
      if (lists_->step.empty()) break;
      TESSERA_TRY_STATUS(compute_step());
      done += lists_->step.size();
      for (std::size_t i = before.part; i < cursor.part; ++i) {
        Part& part = lists_->parts[i];
        if (part.phase == Phase::prepared) part.phase = Phase::computed;
      }
      if (progress_ == nullptr || (*progress_)(done, total)) continue;
      return make_error(ErrorCode::cancelled, "the progress callback stopped after {} of {} tokens; the session is as it was",
                        done, total);
    }
    return {};
  }, ErrorCode::callback_failed);  // only callbacks and a host's executor throw other exceptions than bad_alloc
  if (status) return;
  fail_open(status.error(), before);
  if (progress_ == nullptr) return;
  for (std::size_t i = 0; i < parts(); ++i) {
    if (lists_->parts[i].phase == Phase::computed) fail(i, status.error());
  }
}

void Run::commit(std::size_t i, std::size_t n, Reserved beyond) noexcept {
  Part& part = lists_->parts[i];
  if (part.phase != Phase::computed) return;
  n = std::min(n, part.rows);
  if (n == 0) return undo(i);
  Session::State& session = *part.session;
  const std::uint64_t end = part.begin + n;
  session.keep_tokens(std::max<std::size_t>(part.tokens, end));
  session.kv.commit(end, whole_model() ? session.inputs() : KvInputs(), beyond);
  session.first_layer = options_.first_layer;
  session.last_layer = options_.last_layer;
  session.reused += part.adopted;
  session.has_last = false;
  session.shares_last_page = false;
  session.votes.take(session.removed + end);
  note_computed(session, part.begin);
  close(i);
}

void Run::leave(std::size_t i) noexcept {
  Part& part = lists_->parts[i];
  if (part.phase != Phase::computed) return;
  part.session->keep_tokens(part.tokens);
  close(i);
}

void Run::undo(std::size_t i) noexcept {
  Part& part = lists_->parts[i];
  if (part.branch == nullptr && (part.phase == Phase::prepared || part.phase == Phase::computed)) {
    KvCache& kv = part.session->kv;
    kv.truncate(part.begin - part.ahead);  // drops the tokens whose pages came from the prefix index
    kv.commit(kv.length());                // frees the reserved pages
    part.session->keep_tokens(part.tokens);
    close(i);
    // Also closes the branches, because they continue the part's own keys. From now on their owner may free the forks.
    for (std::size_t branch = i + 1; branch <= i + part.branches; ++branch) lists_->parts[branch].phase = Phase::closed;
  }
  part.phase = Phase::closed;
}

void Run::fail(std::size_t i, Error error) noexcept {
  undo(i);
  lists_->parts[i].outcome = std::move(error);
}

}  // namespace tessera::detail

tessera::Session::State::~State() {
  if (held_by != nullptr) held_by->undo(held_part);
  use->session_ends();
}
