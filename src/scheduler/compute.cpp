// What a step computes: the rows of its requests, in one run.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "engine/run/streams.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using detail::guard;
using Lock = std::unique_lock<std::mutex>;

namespace {

// The model has pushed everybody's state out of the caches: it is asked for together.
void fetch_lines(const void* from, const void* to) noexcept {
  constexpr std::size_t kLine = 64;
  for (const auto* at = static_cast<const std::byte*>(from); at < to; at += kLine) __builtin_prefetch(at, 1);
}
void fetch_ahead(const Active& active) noexcept {
  fetch_lines(&active, &active.has_deadline);
  fetch_lines(active.request.get(), &active.request->error);
}

}  // namespace

// Room for all that the plan's step moves and draws: nobody is lost on the way from one list to another, and no piece that has
// been drawn. Throws bad_alloc; then everybody is where they were.
void Scheduler::State::make_room_for_step() {
  const std::size_t before = running_plans.size();
  std::size_t most_pieces = 0;
  for (const StepPlan::Part& part : plan.parts) {
    most_pieces += 1 + (part.request < before ? running_plans[part.request] : candidate_plans[part.request - before]).drafts;
  }
  members.clear();
  members.reserve(plan.parts.size());
  drawn.clear();
  drawn.reserve(plan.parts.size());
  drawn_pieces.clear();
  drawn_pieces.reserve(most_pieces);
  gaps.clear();
  gaps.reserve(most_pieces);
  pieces.reserve(most_pieces);
  failed.reserve(plan.parts.size());
  admitted.reserve(plan.parts.size());
  running.reserve(running.size() + plan.parts.size());
  waiting.make_room(plan.preempted.size() + plan.parts.size());
}

// Who gives way does so, who is admitted gets a session, and the rows of all go into the run. true: somebody failed.
bool Scheduler::State::offer_rows(detail::Run& run, double begin) noexcept {
  const std::size_t before = running_plans.size();
  for_drops = 0;
  for (const std::size_t index : plan.preempted) {
    give_way(*running[index]);
    waiting.add(std::move(running[index]));
  }
  for (const StepPlan::Part& part : plan.parts) {
    const bool is_new = part.request >= before;
    if (is_new) admitted.push_back(waiting.lift(candidates[part.request - before]));
    ActivePtr& place = is_new ? admitted.back() : running[part.request];
    Active& active = *place;
    Status status;
    if (is_new) status = admit(active, begin);
    if (status) status = put_in(run, active, part);
    if (status) continue;
    failed.emplace_back(nullptr, std::move(status).error());
    failed.back().first = std::move(place);
    if (is_new) admitted.pop_back();
  }
  const bool have_failed = !failed.empty();
  std::erase(running, nullptr);
  waiting.close_gaps();
  for (ActivePtr& active : admitted) insert_by_order(running, std::move(active));
  admitted.clear();
  for (auto& [active, error] : failed) fail_or_wait(std::move(active), error);
  failed.clear();
  return have_failed;
}

// The plan's step, for which there is room. Nothing throws: what fails is one member's. false: nothing was computed.
bool Scheduler::State::compute(double begin) noexcept {
  const double offering = steady_seconds();
  detail::Run run(*shared, detail::all_layers(*shared));
  const bool have_failed = offer_rows(run, begin);
  engine_seconds = steady_seconds() - offering;
  if (members.empty()) return !plan.preempted.empty() || (have_failed && !is_stuck);

  const double computing = steady_seconds();
  run.compute();
  StepLoad load;
  double drafting = 0.0;
  for (const InStep& member : members) {
    if (member.parts > 0) drafting += member.active->decoding->drafting_seconds();
    for (std::size_t i = member.first_part; i < member.first_part + member.parts; ++i) {
      const detail::Part& part = run.part(i);
      const std::uint64_t rows = part.rows - part.adopted;
      load.rows += static_cast<std::uint32_t>(rows);
      load.outputs += static_cast<std::uint32_t>(
          std::ranges::count_if(run.rows(i), [](const detail::RunRow& row) { return row.output != detail::RowOutput::nothing; }));
      load.keys += rows * (part.begin + part.adopted) + rows * (rows + 1) / 2;
      if (part.adopted > 0) count_reused(*member.active, part.adopted);
    }
  }
  for (const InStep& member : members) draw(run, member);
  const double after = now();
  engine_seconds += steady_seconds() - computing;
  costs.observe(load, after - begin - drafting);
  note_drafts(run, load, after - begin - drafting, drafting);
  for (const InStep& member : members) fetch_ahead(*member.active);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::shared_ptr<RequestHandle::State> request = members[i].active->request;  // which may end here
    const Status given = guard([&]() -> Status { return finish_part(*members[i].active, drawn[i], begin, after), Status(); });
    if (!given) fail(*request, given.error());  // the others get theirs
  }
  const Lock lock(mutex);
  ++figures.steps;
  figures.step.add(after - begin);
  figures.rows.add(load.rows);
  figures.tokens += drawn_pieces.size();
  for (const Gap& gap : gaps) figures.inter_token.add(gap.seconds, gap.tokens);
  return true;
}

// What others computed while it was at its prompt.
void Scheduler::State::count_reused(const Active& active, std::uint64_t tokens) noexcept {
  const Lock lock(active.request->mutex);
  active.request->figures.reused_tokens += tokens;
}

// What the drafts of a step in which every row draws have gained. It took so many seconds, making them so many more. Those that
// are made whatever they cost are not among them: the step without drafts has theirs too.
void Scheduler::State::note_drafts(const detail::Run& run, const StepLoad& load, double seconds, double drafting) noexcept {
  if (load.rows != load.outputs) return;
  StepLoad plain;  // the same without drafts
  double tokens = 0.0, plain_tokens = 0.0, plain_drafting = 0.0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const InStep& member = members[i];
    const PlannedRequest& planned = member.active->planned;
    const bool always = !member.active->search && planned.drafts > 0 && std::isinf(planned.draft_chance);
    std::uint32_t own = 0;
    for (std::size_t at = member.first_part; at < member.first_part + member.parts; ++at) {
      const detail::Part& part = run.part(at);
      if (always) own += static_cast<std::uint32_t>(part.rows);
      else if (part.branch == nullptr) own += static_cast<std::uint32_t>(part.rows - part.drafts);
    }
    if (own == 0 || !drawn[i].status) return;  // one that drew what was there already, or failed
    const double given = member.active->search ? own : static_cast<double>(drawn[i].pieces);
    plain.rows += own;
    tokens += given;
    plain_tokens += always ? given : own;
    if (always) plain_drafting += member.active->decoding->drafting_seconds();
  }
  if (plain_tokens == 0.0) return;
  plain.outputs = plain.rows;
  // What else the machine does is not the drafts' fault, so times as they are known; of this step itself if there are none yet.
  const double took = costs.drawing(load).value_or(seconds);
  const double without = plain.rows == load.rows ? took : costs.drawing(plain).value_or(costs.predict(plain));
  ledger.observe({.seconds = took + drafting, .without = tokens / plain_tokens * (without + plain_drafting)});
}

// Offers the request's rows; it becomes a member of the step.
Status Scheduler::State::put_in(detail::Run& run, Active& active, const StepPlan::Part& part) noexcept {
  if (active.search) {
    return guard([&]() -> Status {
      TESSERA_TRY_STATUS(active.search->offer(run));
      members.push_back({.active = &active, .first_part = active.search->first_part(), .parts = active.search->parts()});
      return {};
    });
  }
  // All but the prompt's last token is the samples' in common, or the beams'. One that decodes may have drafts.
  const std::uint64_t most = active.branches()              ? active.planned.needed() - 1
                             : active.planned.needed() == 1 ? 1 + active.planned.drafts
                                                            : active.planned.needed();
  const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(part.rows, most));
  if (rows == 0) return {};
  TESSERA_TRY_STATUS(guard([&] { return check_drop(active, rows); }));
  return guard([&]() -> Status {
    for (;;) {
      TESSERA_TRY(const bool offered, active.decoding->offer(run, rows, part.branches));
      const Status ready = offered ? active.decoding->make_ready(run) : Status();
      if (!ready && active.decoding->retries_without_drafts(ready.error())) continue;
      TESSERA_TRY_STATUS(ready);
      members.push_back({.active = &active, .first_part = active.decoding->part(), .parts = offered ? active.decoding->parts() : 0});
      return {};
    }
  });
}

// All pieces that are known: between two steps nobody has rows ahead, so that pages can be taken from anybody.
void Scheduler::State::draw(detail::Run& run, const InStep& member) noexcept {
  detail::Decoding& decoding = *member.active->decoding;
  Drawn& what = drawn.emplace_back(Drawn{.first = drawn_pieces.size()});
  what.status = guard([&]() -> Status {
    if (member.active->search) return member.active->search->take(run);
    if (member.parts == 0) {
      TESSERA_TRY(Piece piece, decoding.draw());
      drawn_pieces.push_back(std::move(piece));
    } else {
      const Status& computed = run.outcome(decoding.part());
      if (!computed && decoding.retries_without_drafts(computed.error())) return {};  // in the next step
      TESSERA_TRY(std::optional<Piece> piece, decoding.take(run));
      if (piece) drawn_pieces.push_back(*std::move(piece));
    }
    while (decoding.is_ahead()) {
      TESSERA_TRY(Piece piece, decoding.draw());
      drawn_pieces.push_back(std::move(piece));
    }
    return {};
  });
  what.pieces = drawn_pieces.size() - what.first;
}

}  // namespace tessera
