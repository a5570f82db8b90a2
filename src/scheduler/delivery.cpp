// What came of a step, for each of its members: pieces go to their readers, and who has finished or failed ends.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

void Scheduler::State::count_drafts(Active& active, std::size_t drafted, std::size_t accepted) {
  if (drafted == 0) return;
  {
    const Lock lock(active.request->mutex);
    active.request->figures.drafted += drafted;
    active.request->figures.accepted += accepted;
  }
  const Lock lock(mutex);
  figures.drafted += drafted;
  figures.accepted += accepted;
}

void Scheduler::State::finish_part(Active& active, const Drawn& what, double begin, double time) {
  PlannedRequest& planned = active.planned;
  planned.dropped = active.session->state_->removed - active.removed_before;
  const std::uint64_t length = active.session->position() + planned.dropped;
  const Figures& drafts = active.decoding->figures();
  count_drafts(active, drafts.drafted - std::exchange(active.drafted, drafts.drafted), drafts.accepted - std::exchange(active.accepted, drafts.accepted));
  if (!what.status && what.pieces == 0) {
    if (what.status.error().code() != ErrorCode::out_of_memory) return end_running(active, what.status.error());
    const auto at = std::ranges::find(running, &active, &ActivePtr::get);
    ActivePtr own = std::move(*at);
    running.erase(at);
    return fail_or_wait(std::move(own), what.status.error());
  }
  if (length > planned.computed && planned.computed < planned.prompt) {
    note_progress(active, std::min(length, planned.prompt), time);
    const std::uint64_t rows = std::min(length, planned.prompt) - planned.computed;
    if (!active.was_recomputed) {
      const Lock lock(tenants_mutex);
      tenants.computed_prompt(*active.tenant, rows);
    }
  }
  planned.computed = std::max(length, planned.computed);
  if (!std::exchange(active.was_scheduled, true)) {
    const Lock lock(active.request->mutex);
    if (active.request->figures.scheduled < 0) active.request->figures.scheduled = begin;
  }
  if (active.search) return search_on(active, time);
  const std::shared_ptr<RequestHandle::State> request = what.status ? nullptr : active.request;
  for (Piece& piece : std::span(drawn_pieces).subspan(what.first, what.pieces)) deliver(active, std::move(piece), time);
  // With the last one it may have ended.
  if (!what.status) fail(*request, what.status.error());
}

// The first `computed` tokens of the request, those that its session had before among them, are there.
void Scheduler::State::note_progress(Active& active, std::uint64_t computed, double time) noexcept {
  const Lock lock(active.request->mutex);
  RequestFigures& own = active.request->figures;
  const std::uint64_t before = active.planned.prompt - own.prompt_tokens, of_prompt = computed - std::min(computed, before);
  if (of_prompt <= own.computed_tokens) return;
  own.computed_tokens = of_prompt;
  own.progressed = time;
  if (active.request->tells_progress) note_reader(active.request);
}

void Scheduler::State::deliver(Active& active, Piece piece, double time) {
  PlannedRequest& planned = active.planned;
  note_drawn(active, 1);
  ++planned.drawn;
  planned.computed = planned.prompt + planned.drawn - 1;
  const FinishReason finish = piece.finish;
  bool is_first = false;
  {
    const Lock lock(active.request->mutex);
    RequestFigures& own = active.request->figures;
    is_first = own.first_token < 0;
    if (is_first) own.first_token = time;
    ++own.tokens;
    active.request->samples[active.sample].finish = finish;
    if (active.request->on_piece) pieces.emplace_back(active.request, RequestPiece{active.sample, std::move(piece)});
    else active.request->unread.push_back({active.sample, std::move(piece)});
    if (active.request->holds_back()) look_again();
    note_reader(active.request);
  }
  note_token(active, is_first, time);
  if (finish != FinishReason::none) end_running(active, std::nullopt);
}

void Scheduler::State::note_drawn(Active& active, std::uint64_t tokens) noexcept {
  const Lock lock(tenants_mutex);
  tenants.drawn(*active.tenant, tokens);
}

// Of a sequence, or of all beams.
void Scheduler::State::note_token(Active& active, bool is_first, double time) {
  if (is_first) {
    tell(Kind::first_token, active, time);
    const Lock lock(mutex);
    figures.time_to_first_token.add(time - active.planned.submitted);
  } else if (active.last_token > 0) {
    const double gap = time - active.last_token;
    if (!gaps.empty() && gaps.back().seconds == gap) ++gaps.back().tokens;
    else gaps.push_back({.seconds = gap, .tokens = 1});
  }
  active.last_token = time;
}

void Scheduler::State::end_running(Active& active, std::optional<Error> error) noexcept {
  const auto at = std::ranges::find(running, &active, &ActivePtr::get);
  const ActivePtr own = std::move(*at);
  running.erase(at);
  end(*own, std::move(error));
}

// There is something new for a request's reader, whose mutex the caller holds: one that waits in next() goes on, one that
// does not is told when the step is over.
void Scheduler::State::note_reader(const std::shared_ptr<RequestHandle::State>& request) noexcept {
  const bool tells = request->on_ready && std::exchange(request->awaits_news, false);
  request->changed.notify_all();
  if (!tells || std::exchange(request->is_to_be_told, true)) return;
  request->told_after = std::exchange(to_tell, request);
}

// A piece was drawn and could not be handed out: the request ends at the next look.
void Scheduler::State::fail(RequestHandle::State& request, const Error& error) noexcept {
  {
    const Lock lock(request.mutex);
    request.set_error(error);
  }
  look_again();
}

// A sample has ended: well, or with an error, which ends the request.
void Scheduler::State::end(Active& active, std::optional<Error> error) noexcept {
  const double time = now();
  RequestHandle::State& request = *active.request;
  bool is_over = false, is_late = false;
  RequestFigures own;
  const double closing = steady_seconds();
  if (active.decoding && !active.was_preempted && active.decoding->finish_reason() == FinishReason::none) active.decoding->leave();
  active.decoding.reset();
  active.search.reset();
  if (!request.keeps_sessions) active.session.reset();
  engine_seconds += steady_seconds() - closing;
  {
    const Lock lock(request.mutex);
    if (active.session) request.samples[active.sample].session = std::move(active.session);
    request.samples_left -= std::min<std::uint32_t>(request.samples_left, 1 + (error ? active.forks : 0));
    if (error) request.set_error(*error);
    is_over = request.samples_left == 0;
    if (is_over) {
      request.phase = RequestState::ended;
      request.figures.ended = time;
      request.figures.late = is_late = active.has_deadline && time > active.planned.deadline;
    }
    own = request.figures;
    note_reader(active.request);
  }
  if (!is_over && error) look_again();  // its other samples
  if (!is_over) return;
  if (active.tenant != nullptr) {  // nullptr: no step has seen it
    const Lock lock(tenants_mutex);
    tenants.ended(*std::exchange(active.tenant, nullptr));
  }
  tell(Kind::finished, active, time);
  const Lock lock(mutex);
  if (!request.has_failed) ++figures.finished;
  else if (error && error->code() == ErrorCode::cancelled) ++figures.cancelled;
  else ++figures.failed;
  figures.late += is_late ? 1 : 0;
  figures.reused_tokens += own.reused_tokens;
  figures.prompt_tokens += own.prompt_tokens;
  if (own.scheduled >= 0) figures.queue.add(own.scheduled - own.submitted);
  if (request.has_failed) return;
  figures.end_to_end.add(time - own.submitted);
  if (own.tokens > 1) figures.per_output_token.add((time - own.first_token) / static_cast<double>(own.tokens - 1));
}

}  // namespace tessera
