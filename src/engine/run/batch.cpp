// Batches: computes rows of many sessions in one forward pass. The rows of one session are its part of the run (engine/run/run.hpp).
#include <tessera/batch.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <tessera/engine.hpp>
#include <tessera/unstable/kv/page_cost.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/run/streams.hpp"
#include "engine/states.hpp"
#include "model/checks.hpp"

namespace tessera {

using detail::Changing;
using detail::guard;
using detail::make_error;
using detail::Run;
using detail::RunRow;

Status Batch::add(Session& session, const Row& row) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    rows_.push_back({&session, row});
    return {};
  });
}

namespace {

void add_rows(std::vector<Batch::Entry>& rows, Session& session, std::span<const Token> tokens, const Row& last) {
  if (const std::size_t n = rows.size() + tokens.size() + 1; n > rows.capacity()) rows.reserve(std::max(n, 2 * rows.size()));
  for (const Token token : tokens) rows.push_back({&session, {.token = token}});
  if (tokens.empty()) rows.push_back({&session, {}, Batch::Place::pending});
  rows.back().row.want = last.want;
  rows.back().row.sampler = last.sampler;
}

// A session of a batch.
struct Member {
  Session::State* session;
  std::span<const std::size_t> rows;  // indices of the session's entries in the batch, ascending
  Changing use;
  std::size_t part = 0;  // index of the session's part in the run
  std::stop_token stop = {};
  Status outcome = {};
};

// Groups the rows of a batch by session. sessions[i] is the session of row i. Returns a Member for each session, in the order of the
// sessions' first rows. Claims each session for this call; if that fails, because another call is using the session, Member::outcome is
// the error. Fills `order` with the indices of all rows, grouped by session: Member::rows refers to a range of `order`. Precondition:
// `order` has one element for each row.
std::vector<Member> members_of(std::span<Session::State* const> sessions, std::span<std::size_t> order) {
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(sessions[i], i); });
  std::vector<std::span<const std::size_t>> rows_of;  // each session's rows
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](std::size_t i) { return sessions[i] != sessions[*first]; });
    rows_of.emplace_back(first, last);
    first = last;
  }
  std::ranges::sort(rows_of, {}, [](std::span<const std::size_t> rows) { return rows.front(); });
  std::vector<Member> members;
  members.reserve(rows_of.size());
  for (const std::span<const std::size_t> rows : rows_of) {
    Session::State* const session = sessions[rows.front()];
    members.push_back({.session = session, .rows = rows, .use = Changing(*session->use)});
    members.back().outcome = members.back().use.status();
  }
  return members;
}

// Returns the run's value for a wanted output. Precondition: check_entry() has succeeded.
detail::RowOutput output_of(Want want) {
  switch (want) {
    case Want::nothing: break;
    case Want::logits: return detail::RowOutput::logits;
    case Want::hidden: return detail::RowOutput::hidden;
    case Want::token: return detail::RowOutput::token;
    case Want::embedding: return detail::RowOutput::embedding;
    case Want::scores: return detail::RowOutput::scores;
  }
  return detail::RowOutput::nothing;
}

// Checks an entry of the batch: the wanted output, the embedding and the place.
Status check_entry(const Session::State& session, const Batch::Entry& entry) {
  const Row& row = entry.row;
  const std::uint32_t d_model = session.shared->model.spec.d_model;
  if (row.want < Want::nothing || row.want > Want::scores) {
    return make_error(ErrorCode::invalid_argument, "a row wants {}; choose nothing, logits, hidden, token, embedding or scores",
                      static_cast<int>(row.want));
  }
  if (!row.embedding.empty() && row.embedding.size() != d_model) {
    return make_error(ErrorCode::invalid_argument, "an embedding of {} values; the model's have {}", row.embedding.size(), d_model);
  }
  if (entry.place == Batch::Place::pending && !session.has_pending()) {
    return make_error(ErrorCode::invalid_state, "a row stands for a pending token, and the session has none");
  }
  return {};
}

// Replaces the session's last row in the run, which is the row of its last pending token, by `row`. `row` is a row of the batch that adds
// no token (Batch::Place::pending): it only says which outputs of the pending token are wanted. So the replaced row's token (or
// embedding) is kept. Error: invalid_argument, the batch has an earlier row of this session.
Status stand_for_pending(Run& run, const Member& member, RunRow row) {
  const std::span<RunRow> rows = run.rows(member.part);
  if (rows.size() != member.session->pending().size() || rows.back().output != detail::RowOutput::nothing) {
    return make_error(ErrorCode::invalid_argument, "a row that stands for the pending token comes once, before the session's others");
  }
  row.token = rows.back().token;
  row.embedding = rows.back().embedding;
  rows.back() = row;
  return {};
}

// Finds sessions of a batch that begin with the same inputs: one session computes these inputs, and the others wait for it.
class SharedPrompts {
 public:
  SharedPrompts(const Run& run, std::size_t d_model) noexcept : run_(run), d_model_(d_model) {}

  // Returns whether `part` should wait until the prepared part `first` is committed. It should, if both parts begin with the same inputs,
  // at least one full page of them that `first` will compute: after the commit, `part` can use the pages of `first` instead of computing
  // the same inputs again.
  [[nodiscard]] bool waits_for(std::size_t part, std::size_t first) const noexcept {
    const detail::Part &one = run_.part(first), &other = run_.part(part);
    if (one.phase != detail::Part::Phase::prepared || one.begin != 0 || !is_new(*other.session) || !run_.whole_model()) return false;
    const KvOptions &a = one.session->kv_options, &b = other.session->kv_options;
    if (!shares(a) || !shares(b) || a.dtype != b.dtype || a.wide != b.wide || a.page_tokens != b.page_tokens || a.salt != b.salt) return false;
    const std::span<const RunRow> mine = run_.rows(first), its = run_.rows(part);
    const std::size_t most = std::min(mine.size(), its.size() - 1);  // the part computes at least its last row itself
    std::size_t same = 0;
    while (same < most && are_same_input(mine[same], its[same]) && its[same].output == detail::RowOutput::nothing) ++same;
    const std::uint64_t alike = std::min<std::uint64_t>(same, one.session->adapters.first_difference(other.session->adapters));
    return alike / a.page_tokens * a.page_tokens > one.adopted;
  }

 private:
  [[nodiscard]] bool are_same_input(const RunRow& a, const RunRow& b) const noexcept {
    if (a.embedding == nullptr || b.embedding == nullptr) return a.embedding == b.embedding && a.token == b.token;
    return a.embedding == b.embedding || std::memcmp(a.embedding, b.embedding, d_model_ * sizeof(float)) == 0;
  }
  static bool is_new(const Session::State& session) noexcept { return session.tokens.empty(); }
  static bool shares(const KvOptions& kv) noexcept { return kv.kind == KvKind::paged && kv.prefix == PrefixReuse::on; }

  const Run& run_;
  std::size_t d_model_;
};

// Copies the logits of `last`, the session's last row in the batch, to the session, if they were wanted.
void keep_logits(Session::State& session, const RunRow& last) noexcept {
  if (last.output != detail::RowOutput::logits) return;
  const std::size_t vocab = session.vocab();
  if (!session.logits.is_writable(1, vocab)) std::swap(session.logits, session.next_logits);
  std::copy_n(last.to, vocab, session.logits.values().data());
  session.logits_rows = 1;
  session.has_last = true;
}
Status make_room_for_logits(Session::State& session, const RunRow& last) {
  if (last.output != detail::RowOutput::logits || session.logits.is_writable(1, session.vocab())) return {};
  return session.next_logits.ensure(*session.shared->options.memory, 1, session.vocab());
}

// Prepares, computes and commits the members' parts. A part that waits for another part's prompt is computed in a later round.
void run_members(Run& run, std::size_t d_model, std::vector<Member>& members) {
  const SharedPrompts prompts(run, d_model);
  std::vector<Member*> waiting, ready, later;
  waiting.reserve(members.size());
  ready.reserve(members.size());
  later.reserve(members.size());
  for (Member& member : members) {
    if (member.outcome) waiting.push_back(&member);
  }
  for (; !waiting.empty(); std::swap(waiting, later)) {
    ready.clear();
    later.clear();
    for (Member* member : waiting) {
      if (std::ranges::any_of(ready, [&](const Member* first) { return prompts.waits_for(member->part, first->part); })) {
        later.push_back(member);
        continue;
      }
      member->outcome = make_room_for_logits(*member->session, run.rows(member->part).back());
      if (member->outcome) member->outcome = detail::make_ready(run, member->part);
      if (member->outcome) ready.push_back(member);
    }
    run.compute();
    for (Member* member : ready) {
      member->outcome = run.outcome(member->part);
      if (!member->outcome) continue;
      detail::after_commit(run, member->part);
      keep_logits(*member->session, run.rows(member->part).back());
    }
  }
}

}  // namespace

Status Batch::add(Session& session, std::span<const Token> tokens, Want want) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    add_rows(rows_, session, tokens, {.want = want});
    return {};
  });
}

Status Batch::add(Session& session, std::span<const Token> tokens, Sampler& sampler) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    add_rows(rows_, session, tokens, {.want = Want::token, .sampler = &sampler});
    return {};
  });
}

Status Outputs::outcome(std::size_t i) const noexcept {
  if (rows_.empty()) return detail::empty_handle("Outputs");
  if (i >= rows_.size()) return make_error(ErrorCode::invalid_argument, "there is no row {}: the batch had {} rows", i, rows_.size());
  return outcomes_[rows_[i].session];
}

Status Outputs::status() const noexcept {
  if (rows_.empty()) return detail::empty_handle("Outputs");
  for (const Status& outcome : outcomes_) {
    if (!outcome) return outcome;
  }
  return {};
}

Status Batch::set_stop(Session& session, std::stop_token stop) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    stops_.push_back({&session, std::move(stop)});
    return {};
  });
}

void Batch::clear() noexcept {
  rows_.clear();
  stops_.clear();
}

Result<KvNeed> Engine::kv_need(const Batch& batch) const noexcept {
  return guard([&]() -> Result<KvNeed> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    std::vector<const Session::State*> rows;  // the session of each row
    rows.reserve(batch.size());
    for (const Batch::Entry& entry : batch.entries()) {
      if (entry.session->state_ == nullptr) return detail::empty_handle("Session");
      rows.push_back(entry.session->state_.get());
      if (rows.back()->shared != state_) {
        return make_error(ErrorCode::invalid_argument, "a row's session belongs to another engine");
      }
    }
    const std::span<const Batch::Entry> entries = batch.entries();
    std::ranges::sort(rows);
    KvNeed need;
    for (auto first = rows.begin(); first != rows.end();) {
      const Session::State& session = **first;
      const auto last = std::upper_bound(first, rows.end(), *first);
      const auto pending = static_cast<std::uint64_t>(std::ranges::count_if(entries, [&](const Batch::Entry& entry) {
        return entry.place == Batch::Place::pending && entry.session->state_.get() == &session;
      }));
      const detail::Reading use(*session.use);
      TESSERA_TRY_STATUS(use.status());
      const KvCache& kv = session.kv;
      const KvLayout& layout = kv.layout();
      const std::uint64_t end = session.tokens.size() + static_cast<std::uint64_t>(last - first) - pending;
      const std::uint64_t length = kv.suspended() ? 0 : kv.length();
      const bool copies = end > length && length % layout.page_tokens != 0 && session.shares_last_page;
      const PageCost::Growth growth = PageCost::of(layout, kv.checkpoints(), true).growth(length, end, copies ? 1 : 0);
      if (kv.kind() == KvKind::paged) {
        need.pages += growth.pages;
        need.bytes += growth.bytes;
      } else {
        need.contiguous_bytes += growth.bytes;
      }
      first = last;
    }
    return need;
  });
}

Result<Outputs> Engine::forward(const Batch& batch, const ForwardOptions& options) const noexcept {
  return guard([&]() -> Result<Outputs> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    const detail::FpState fp_state;
    const ModelSpec& spec = state_->model.spec;
    const std::uint32_t last_layer = std::min(options.last_layer, spec.n_layers());
    if (options.first_layer >= last_layer) {
      return make_error(ErrorCode::invalid_argument,
                        "no layer lies from {} up to {}: choose first_layer below last_layer, within the model's {}",
                        options.first_layer, last_layer, spec.n_layers());
    }
    TESSERA_TRY_STATUS(detail::check_layers(spec, options.first_layer, last_layer));
    const std::span<const Batch::Entry> entries = batch.entries();
    std::vector<Session::State*> sessions;  // the session of each entry
    sessions.reserve(entries.size());
    for (const Batch::Entry& entry : entries) {
      if (entry.session->state_ == nullptr) return detail::empty_handle("Session");
      sessions.push_back(entry.session->state_.get());
    }
    std::vector<std::size_t> order(entries.size());
    std::vector<Member> members = members_of(sessions, order);
    for (const Batch::Stop& stop : batch.stops()) {
      if (stop.session->state_ == nullptr) return detail::empty_handle("Session");
      const auto member = std::ranges::find(members, stop.session->state_.get(), &Member::session);
      if (member != members.end()) member->stop = stop.stop;
    }

    Outputs outputs;
    outputs.rows_.resize(entries.size());
    std::size_t values = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      Member& member = members[m];
      for (const std::size_t i : member.rows) {
        outputs.rows_[i].session = m;
        if (member.outcome) member.outcome = check_entry(*member.session, entries[i]);
        if (!member.outcome) continue;
        outputs.rows_[i].offset = values;
        outputs.rows_[i].size = detail::output_size(output_of(entries[i].row.want), spec);
        values += outputs.rows_[i].size;
      }
    }
    TESSERA_TRY(outputs.values_, Buffer::allocate(*state_->options.memory, values * sizeof(float), "outputs"));
    outputs.outcomes_.reserve(members.size());  // reserved now, because nothing may fail after a session has its rows

    std::vector<std::size_t> drawing;  // indices of entries that want a token
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].row.want == Want::token) drawing.push_back(i);
    }
    std::vector<detail::Draw> draws(drawing.size());
    {
      Run run(*state_, {.first_layer = options.first_layer, .last_layer = last_layer, .stop = options.stop});
      for (Member& member : members) {
        if (!member.outcome) continue;
        member.part = run.begin_part(*member.session, member.stop);
        for (const std::size_t i : member.rows) {
          const Row& row = entries[i].row;
          RunRow to{.token = row.token, .output = output_of(row.want), .segment = row.segment, .embedding = row.embedding.empty() ? nullptr : row.embedding.data()};
          if (outputs.rows_[i].size != 0) to.to = reinterpret_cast<float*>(outputs.values_.data()) + outputs.rows_[i].offset;
          if (row.want == Want::token) {
            to.draw = &draws[static_cast<std::size_t>(std::ranges::lower_bound(drawing, i) - drawing.begin())];
            to.draw->sampler = row.sampler;
          }
          if (entries[i].place == Batch::Place::next) run.add(to);
          else member.outcome = stand_for_pending(run, member, to);
          if (!member.outcome) break;
        }
      }
      run_members(run, spec.d_model, members);
    }
    for (std::size_t i = 0; i < drawing.size(); ++i) outputs.rows_[drawing[i]].token = draws[i].piece.token;
    const auto good = [](const Member& member) { return member.outcome.has_value(); };
    if (!members.empty() && std::ranges::none_of(members, good)) return members.front().outcome.error();
    for (Member& member : members) outputs.outcomes_.push_back(std::move(member.outcome));
    return outputs;
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
