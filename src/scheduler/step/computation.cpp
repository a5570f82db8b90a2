#include "scheduler/step/computation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "engine/run/run.hpp"

namespace tessera::detail {

using Lock = std::unique_lock<std::mutex>;

namespace {

// Prefetches the cache lines of the bytes [from, to), for writing.
void fetch_lines(const void* from, const void* to) noexcept {
  constexpr std::size_t kLine = 64;
  for (const auto* at = static_cast<const std::byte*>(from); at < to; at += kLine) __builtin_prefetch(at, 1);
}
// Prefetches the state of a request, which the step reads next. The model's computation has evicted all states from the processor's caches.
// If all states are prefetched at once, their cache misses overlap.
void fetch_ahead(const Active& active) noexcept {
  fetch_lines(&active, &active.has_deadline);
  fetch_lines(active.request.get(), &active.request->error);
}

}  // namespace

void Computation::make_room() {
  const StepPlan& plan = planning_.plan();
  std::size_t most_pieces = 0;
  for (const StepPlan::Share& share : plan.shares) most_pieces += 1 + planning_.planned(share).drafts;
  members_.clear();
  members_.reserve(plan.shares.size());
  pieces_.clear();
  pieces_.reserve(most_pieces);
  failed_.reserve(plan.shares.size());
  delivery_.make_room_for_step(most_pieces);
  requests_.make_room_for_step(plan.shares.size(), plan.preempted.size());
}

// Preempts and admits requests as planned, and adds the planned rows of all requests to the run. Returns whether a request failed.
bool Computation::offer_rows(Run& run, double begin) noexcept {
  for (const std::size_t index : planning_.plan().preempted) {
    preemption_.give_way(*requests_.running()[index]);
    requests_.wait(requests_.lift_running(index));
  }
  for (const StepPlan::Share& share : planning_.plan().shares) {
    const bool is_new = planning_.is_new(share);
    Active& active = is_new ? requests_.admit(planning_.place_of_new(share)) : *requests_.running()[share.request];
    Status status;
    if (is_new) status = admission_.admit(active, begin);
    if (status) status = put_in(run, active, share);
    if (status) continue;
    failed_.emplace_back(is_new ? requests_.lift_last_admitted() : requests_.lift_running(share.request), std::move(status).error());
  }
  requests_.close_gaps();
  requests_.run_admitted();
  const std::size_t failed = failed_.size();
  for (auto& [active, error] : failed_) preemption_.fail_or_wait(std::move(active), error, failed > 1);
  failed_.clear();
  return failed > 0;
}

bool Computation::compute(double begin) noexcept {
  std::optional<Run> of_step;
  bool have_failed = false;
  drops_.begin_step();
  engine_time_.measure([&] {
    of_step.emplace(*setup_.shared, all_layers(*setup_.shared));
    have_failed = offer_rows(*of_step, begin);
  });
  if (members_.empty()) return !planning_.plan().preempted.empty() || (have_failed && !preemption_.is_stuck());

  Run& run = *of_step;
  Load load;
  double after = begin;
  engine_time_.measure([&] {
    run.compute();
    load = load_of(run);
    for (Member& member : members_) draw(run, member);
    after = host_.now();
  });
  const double seconds = after - begin - load.drafting;
  learnt_.costs.observe(load.rows, seconds);
  note_drafts(run, load, seconds);
  for (const Member& member : members_) fetch_ahead(*member.active);
  for (const Member& member : members_) {
    // A copy of the pointer, because finish() may end the request and free its Active.
    const std::shared_ptr<RequestHandle::State> request = member.active->request;
    const Status given = guard([&]() -> Status { return finish(member, begin, after), Status(); });
    if (!given) delivery_.fail(*request, given.error());  // an error ends only this request; the other members still get their pieces
  }
  delivery_.count_step(after - begin, load.rows.rows, pieces_.size());
  return true;
}

// Adds the request's planned rows to the run, and makes the request a member of the step.
Status Computation::put_in(Run& run, Active& active, const StepPlan::Share& share) noexcept {
  return guard([&]() -> Status {
    if (active.search) {
      TESSERA_TRY_STATUS(active.search->offer(run));
      members_.push_back({.active = &active, .first_part = active.search->first_part(), .parts = active.search->parts()});
      return {};
    }
    // If samples or beams will be forked, stops before the prompt's last token, because each sample or beam computes that token itself. A
    // decoding request may have drafts in addition to its row.
    const std::uint64_t most = active.branches()              ? active.planned.needed() - 1
                               : active.planned.needed() == 1 ? 1 + active.planned.drafts
                                                              : active.planned.needed();
    const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(share.rows, most));
    if (rows == 0) return {};
    TESSERA_TRY_STATUS(drops_.check(active, rows));
    Decoding& decoding = *active.decoding;
    TESSERA_TRY(const bool offered, decoding.offer_ready(run, rows, share.branches));
    members_.push_back({.active = &active, .first_part = decoding.part(), .parts = offered ? decoding.parts() : 0});
    return {};
  });
}

// Returns the load of the rows that the run really computed. Rows whose pages came from the prefix index (Part::adopted) were not computed:
// they are not counted as load, and are added to the reused_tokens of their requests.
Computation::Load Computation::load_of(const Run& run) const noexcept {
  Load load;
  for (const Member& member : members_) {
    if (member.parts > 0) load.drafting += member.active->decoding->drafting_seconds();
    for (std::size_t i = member.first_part; i < member.first_part + member.parts; ++i) {
      const Part& part = run.part(i);
      const std::uint64_t rows = part.rows - part.adopted;
      load.rows.rows += static_cast<std::uint32_t>(rows);
      load.rows.outputs += static_cast<std::uint32_t>(
          std::ranges::count_if(run.rows(i), [](const RunRow& row) { return row.output != RowOutput::nothing; }));
      load.rows.keys += rows * (part.begin + part.adopted) + rows * (rows + 1) / 2;
      if (part.adopted == 0) continue;
      const Lock lock(member.active->request->mutex);
      member.active->request->figures.reused_tokens += part.adopted;
    }
  }
  return load;
}

// Tells the DraftLedger how much time the drafts of this step have gained or lost, compared with the same step without drafts. `seconds` is
// the step's time without the time to make drafts. Does nothing if a row of the step does not draw a token. Drafts that a request wants at
// any cost (DraftLength::longest) are counted in both the step and the step without drafts, so that they gain and lose nothing.
void Computation::note_drafts(const Run& run, const Load& load, double seconds) noexcept {
  if (load.rows.rows != load.rows.outputs) return;
  StepLoad plain;  // load of the same step without drafts
  double tokens = 0.0, plain_tokens = 0.0, plain_drafting = 0.0;
  for (const Member& member : members_) {
    const Active& active = *member.active;
    const PlannedRequest& planned = active.planned;
    const bool always = !active.search && planned.drafts > 0 && std::isinf(planned.draft_chance);
    std::uint32_t own = 0;
    for (std::size_t at = member.first_part; at < member.first_part + member.parts; ++at) {
      const Part& part = run.part(at);
      if (always) own += static_cast<std::uint32_t>(part.rows);
      else if (part.branch == nullptr) own += static_cast<std::uint32_t>(part.rows - part.drafts);
    }
    if (own == 0 || !member.status) return;  // the member drew from logits that were known already, or failed
    const double given = active.search ? own : static_cast<double>(member.pieces);
    plain.rows += own;
    tokens += given;
    plain_tokens += always ? given : own;
    if (always) plain_drafting += active.decoding->drafting_seconds();
  }
  if (plain_tokens == 0.0) return;
  plain.outputs = plain.rows;
  // If the usual time of steps with this number of rows is known, uses it instead of this step's own time, because other work of the
  // machine may have slowed this step down.
  const CostModel& costs = learnt_.costs;
  const double took = costs.drawing(load.rows).value_or(seconds);
  const double without = plain.rows == load.rows.rows ? took : costs.drawing(plain).value_or(costs.predict(plain));
  learnt_.drafts.observe({.seconds = took + load.drafting, .without = tokens / plain_tokens * (without + plain_drafting)});
}

// Draws all tokens of the member that this step's logits allow: the next token, and all accepted drafts. No accepted draft is left for a
// later step. So between two steps each token whose keys and values are in a session has been drawn. A request that has to give its pages up
// can therefore always be computed again from its drawn tokens.
void Computation::draw(Run& run, Member& member) noexcept {
  member.first_piece = pieces_.size();
  member.status = guard([&]() -> Status {
    if (member.active->search) return member.active->search->take(run);
    return member.active->decoding->take_all(run, [&](Piece piece) { pieces_.push_back(std::move(piece)); });
  });
  member.pieces = pieces_.size() - member.first_piece;
}

// Delivers the member's pieces to the request's reader. If the member has finished or failed, ends it.
void Computation::finish(const Member& member, double begin, double time) {
  Active& active = *member.active;
  PlannedRequest& planned = active.planned;
  planned.dropped = view_of(state_of(*active.session)).removed - active.removed_before;
  const std::uint64_t length = active.session->position() + planned.dropped;
  delivery_.count_drafts(active);
  if (!member.status && member.pieces == 0) {
    if (member.status.error().code() != ErrorCode::out_of_memory) return end_running(active, member.status.error());
    return preemption_.fail_or_wait(requests_.take_running(active), member.status.error(), false);
  }
  if (length > planned.computed && planned.computed < planned.prompt) {
    const std::uint64_t computed = std::min(length, planned.prompt);
    delivery_.note_progress(active, computed, time);
    if (!active.was_recomputed) {
      accounts_.tenants.with([&](Tenants& tenants) { tenants.computed_prompt(*active.tenant, computed - planned.computed); });
    }
  }
  planned.computed = std::max(length, planned.computed);
  if (!std::exchange(active.was_scheduled, true)) {
    const Lock lock(active.request->mutex);
    if (active.request->figures.scheduled < 0) active.request->figures.scheduled = begin;
  }
  if (active.search) {
    const Result<bool> ended = delivery_.deliver_search(active, time);
    if (!ended) end_running(active, ended.error());
    else if (*ended) end_running(active, std::nullopt);
    return;
  }
  const std::shared_ptr<RequestHandle::State> request = member.status ? nullptr : active.request;
  for (Piece& piece : std::span(pieces_).subspan(member.first_piece, member.pieces)) {
    if (delivery_.deliver(active, std::move(piece), time)) end_running(active, std::nullopt);  // true: this was the sample's last piece
  }
  // The last piece may have ended and freed `active`, so the error is stored in `request`.
  if (!member.status) delivery_.fail(*request, member.status.error());
}

}  // namespace tessera::detail
