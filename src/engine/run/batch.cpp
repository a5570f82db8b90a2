// Batches: rows of many sessions in one forward pass, and their results.
#include <tessera/batch.hpp>

#include <algorithm>

#include <tessera/engine.hpp>

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
  Changing use;
  std::size_t rows = 0;   // entries of the session
  std::size_t first = 0;  // index of its first entry in `order`; after sorting, of the end of its entries
  std::size_t part = 0;   // index in the run
  std::stop_token stop = {};
  Status outcome = {};
};

// Checks the caller's wishes for a row.
Status check_entry(const ModelSpec& spec, const Batch::Entry& entry) {
  const Row& row = entry.row;
  if (row.want < Want::nothing || row.want > Want::embedding) {
    return make_error(ErrorCode::invalid_argument, "a row wants {}; choose nothing, logits, hidden, token or embedding",
                      static_cast<int>(row.want));
  }
  if (!row.embedding.empty() && row.embedding.size() != spec.d_model) {
    return make_error(ErrorCode::invalid_argument, "an embedding of {} values; the model's have {}", row.embedding.size(),
                      spec.d_model);
  }
  return {};
}

// Finds sessions of a batch that begin with the same tokens: one session computes the tokens, and the others wait for them.
class SharedPrompts {
 public:
  explicit SharedPrompts(const Run& run) noexcept : run_(run) {}

  // Returns whether the part should wait until `first`, which is prepared, is committed, and then take its pages.
  [[nodiscard]] bool waits_for(std::size_t part, std::size_t first) const noexcept {
    const detail::Part &one = run_.part(first), &other = run_.part(part);
    if (one.phase != detail::Part::Phase::prepared || one.begin != 0 || !is_new(*other.session) || !run_.whole_model()) return false;
    const KvOptions &a = one.session->kv_options, &b = other.session->kv_options;
    if (!shares(a) || !shares(b) || a.dtype != b.dtype || a.wide != b.wide || a.page_tokens != b.page_tokens || a.salt != b.salt) return false;
    const std::span<const RunRow> mine = run_.rows(first), its = run_.rows(part);
    const std::size_t most = std::min(mine.size(), its.size() - 1);  // the part computes at least one row itself
    std::size_t same = 0;
    while (same < most && mine[same].token == its[same].token && mine[same].embedding == nullptr &&
           its[same].embedding == nullptr && its[same].output == detail::RowOutput::nothing) {
      ++same;
    }
    return same / a.page_tokens * a.page_tokens > one.adopted;
  }

 private:
  static bool is_new(const Session::State& session) noexcept { return session.tokens.empty(); }
  static bool shares(const KvOptions& kv) noexcept { return kv.kind == KvKind::paged && kv.prefix == PrefixReuse::on; }

  const Run& run_;
};

// Copies the logits of the session's last row, if they were wanted, to the session.
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

// Prepares, computes and commits the members' parts. Parts that wait for another part's prompt go on in a later round.
void run_members(Run& run, std::vector<Member>& members) {
  const SharedPrompts prompts(run);
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
      std::uint64_t pages = layout.pages(end) - (kv.suspended() ? 0 : layout.pages(kv.length()));
      if (!kv.suspended() && end > kv.length() && kv.length() % layout.page_tokens != 0 && session.shares_last_page) ++pages;
      std::uint64_t bytes = pages * layout.page_tokens * layout.bytes_per_token();
      if (layout.has_state() && end > kv.length()) {
        const std::uint64_t full = end / layout.page_tokens - kv.length() / layout.page_tokens;
        const std::uint64_t states = 1 + std::min<std::uint64_t>(full, std::uint64_t{kv.checkpoints()} + kMostOffered);
        pages += states;
        bytes += states * layout.state_bytes();
      }
      if (kv.kind() == KvKind::paged) {
        need.pages += pages;
        need.bytes += bytes;
      } else {
        need.contiguous_bytes += bytes;
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
    Outputs outputs;
    outputs.rows_.resize(entries.size());
    std::vector<Member> members;
    const auto member_of = [&](const Session& handle) -> Member& {
      Session::State* session = handle.state_.get();
      if (Changing::is_by(*session->use, &members)) return members[session->part];
      // If another call uses the session, our claim failed: look for the session among the members that were refused.
      const auto refused = std::ranges::find_if(members, [&](const Member& m) { return m.session == session; });
      if (refused != members.end()) return *refused;
      Member& member = members.emplace_back(Member{.session = session, .use = Changing(*session->use, nullptr, &members)});
      member.outcome = member.use.status();
      if (member.outcome) session->part = members.size() - 1;
      return member;
    };
    for (const Batch::Entry& entry : entries) {
      if (entry.session->state_ == nullptr) return detail::empty_handle("Session");
    }
    std::size_t values = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Member& member = member_of(*entries[i].session);
      outputs.rows_[i].session = static_cast<std::size_t>(&member - members.data());
      ++member.rows;
      if (member.outcome) member.outcome = check_entry(spec, entries[i]);
      if (member.outcome && entries[i].place == Batch::Place::pending && !member.session->has_pending()) {
        member.outcome = make_error(ErrorCode::invalid_state, "a row stands for a pending token, and the session has none");
      }
      if (!member.outcome) continue;
      const Want want = entries[i].row.want;
      outputs.rows_[i].offset = values;
      outputs.rows_[i].size = want == Want::logits ? spec.vocab_size : want == Want::hidden || want == Want::embedding ? spec.d_model : 0;
      values += outputs.rows_[i].size;
    }
    for (const Batch::Stop& stop : batch.stops()) {
      if (stop.session->state_ == nullptr) return detail::empty_handle("Session");
      if (Changing::is_by(*stop.session->state_->use, &members)) members[stop.session->state_->part].stop = stop.stop;
    }
    TESSERA_TRY(outputs.values_, Buffer::allocate(*state_->options.memory, values * sizeof(float), "outputs"));

    // Sort the entries by member, in their order.
    std::vector<std::size_t> order(entries.size());
    for (std::size_t i = 0, first = 0; i < members.size(); ++i) members[i].first = std::exchange(first, first + members[i].rows);
    for (std::size_t i = 0; i < entries.size(); ++i) order[members[outputs.rows_[i].session].first++] = i;
    std::vector<detail::Draw> draws(static_cast<std::size_t>(std::ranges::count_if(
        entries, [](const Batch::Entry& entry) { return entry.row.want == Want::token; })));
    outputs.outcomes_.reserve(members.size());  // nothing fails once a session has its rows
    std::vector<detail::Draw*> draw_of(draws.empty() ? 0 : entries.size());
    {
      Run run(*state_, {.first_layer = options.first_layer, .last_layer = last_layer, .stop = options.stop});
      std::size_t drawn = 0;
      for (Member& member : members) {
        if (!member.outcome) continue;
        member.part = run.begin_part(*member.session, member.stop);
        for (const std::size_t i : std::span(order).subspan(member.first - member.rows, member.rows)) {
          const Row& row = entries[i].row;
          const std::size_t size = outputs.rows_[i].size;
          RunRow to{.token = row.token,
                    .output = static_cast<detail::RowOutput>(row.want),
                    .embedding = row.embedding.empty() ? nullptr : row.embedding.data(),
                    .to = size == 0 ? nullptr : reinterpret_cast<float*>(outputs.values_.data()) + outputs.rows_[i].offset};
          if (row.want == Want::token) {
            to.draw = draw_of[i] = &draws[drawn++];
            to.draw->sampler = row.sampler;
          }
          if (entries[i].place == Batch::Place::next) {
            run.add(to);
            continue;
          }
          RunRow& pending = run.rows(member.part).back();
          if (run.rows(member.part).size() != member.session->pending().size() ||
              pending.output != detail::RowOutput::nothing) {
            member.outcome = make_error(ErrorCode::invalid_argument,
                                        "a row that stands for the pending token comes once, before the session's others");
            break;
          }
          to.token = pending.token;
          pending = to;
        }
      }
      run_members(run, members);
    }
    for (std::size_t i = 0; i < draw_of.size(); ++i) {
      if (draw_of[i] != nullptr) outputs.rows_[i].token = draw_of[i]->piece.token;
    }
    const auto good = [](const Member& member) { return member.outcome.has_value(); };
    if (!members.empty() && std::ranges::none_of(members, good)) return members.front().outcome.error();
    for (Member& member : members) outputs.outcomes_.push_back(std::move(member.outcome));
    return outputs;
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
