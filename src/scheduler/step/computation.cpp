#include "scheduler/step/computation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "engine/run/run.hpp"

namespace tessera::detail {

using Lock = std::unique_lock<std::mutex>;

namespace {

// Prefetches a request's state. A step of the model has pushed the states out of the processor's caches; prefetching all of them at
// once overlaps the misses.
void fetch_lines(const void* from, const void* to) noexcept {
  constexpr std::size_t kLine = 64;
  for (const auto* at = static_cast<const std::byte*>(from); at < to; at += kLine) __builtin_prefetch(at, 1);
}
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

// Preempts and admits requests as planned, and puts the rows of all planned requests into the run. Returns whether a request failed.
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
    const std::shared_ptr<RequestHandle::State> request = member.active->request;  // kept: finish() may end the request
    const Status given = guard([&]() -> Status { return finish(member, begin, after), Status(); });
    if (!given) delivery_.fail(*request, given.error());  // the other members still get their pieces
  }
  delivery_.count_step(after - begin, load.rows.rows, pieces_.size());
  return true;
}

// Puts the request's rows into the run, and adds the request to the step's members.
Status Computation::put_in(Run& run, Active& active, const StepPlan::Share& share) noexcept {
  return guard([&]() -> Status {
    if (active.search) {
      TESSERA_TRY_STATUS(active.search->offer(run));
      members_.push_back({.active = &active, .first_part = active.search->first_part(), .parts = active.search->parts()});
      return {};
    }
    // Samples and beams share all of the prompt but its last token. A request that decodes may have drafts.
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

// Returns the load of the rows that the run has computed. Rows whose pages the run has taken from the prefix index instead (Part::adopted)
// are no load; they are added to their requests' reused_tokens.
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

// Notes what drafts have gained or lost in a step: compares the step with the same step without drafts. `seconds`: the step's time,
// without the time to make drafts. Does nothing unless every row of the step draws. Drafts that a request wants at any cost
// (DraftLength::longest) count on both sides, so they neither gain nor lose.
void Computation::note_drafts(const Run& run, const Load& load, double seconds) noexcept {
  if (load.rows.rows != load.rows.outputs) return;
  StepLoad plain;  // the same step without drafts
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
    if (own == 0 || !member.status) return;  // the member drew from known logits, or failed
    const double given = active.search ? own : static_cast<double>(member.pieces);
    plain.rows += own;
    tokens += given;
    plain_tokens += always ? given : own;
    if (always) plain_drafting += active.decoding->drafting_seconds();
  }
  if (plain_tokens == 0.0) return;
  plain.outputs = plain.rows;
  // Uses the known times of steps of this width, since other work of the machine is not the drafts' fault. Without known times:
  // this step's own time.
  const CostModel& costs = learnt_.costs;
  const double took = costs.drawing(load.rows).value_or(seconds);
  const double without = plain.rows == load.rows.rows ? took : costs.drawing(plain).value_or(costs.predict(plain));
  learnt_.drafts.observe({.seconds = took + load.drafting, .without = tokens / plain_tokens * (without + plain_drafting)});
}

// Draws all tokens of a member that this step's results give, accepted drafts included. So between two steps no request has computed rows
// that are not yet in its sequence, and pages can be taken from any request.
void Computation::draw(Run& run, Member& member) noexcept {
  member.first_piece = pieces_.size();
  member.status = guard([&]() -> Status {
    if (member.active->search) return member.active->search->take(run);
    return member.active->decoding->take_all(run, [&](Piece piece) { pieces_.push_back(std::move(piece)); });
  });
  member.pieces = pieces_.size() - member.first_piece;
}

// Gives the member's pieces to the reader, and ends the member if it has finished or failed.
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
    if (delivery_.deliver(active, std::move(piece), time)) end_running(active, std::nullopt);  // no piece follows it
  }
  // The last piece may have ended `active`, so the error goes to `request`.
  if (!member.status) delivery_.fail(*request, member.status.error());
}

}  // namespace tessera::detail
