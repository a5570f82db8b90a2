#include "scheduler/step/delivery.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/session/edit.hpp"

namespace tessera::detail {

using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

Delivery::Delivery(const Setup& setup, HostCalls& host, Inbox& inbox, Accounts& accounts, EngineTime& engine_time)
    : setup_(setup), host_(host), inbox_(inbox), accounts_(accounts), engine_time_(engine_time) {
  if (setup.options.on_kv_event) kv_watch_ = std::make_unique<KvWatch>(setup.inside.kv_pools);
}

void Delivery::make_room_for_step(std::size_t pieces) {
  gaps_.clear();
  gaps_.reserve(pieces);
  told_.pieces.reserve(pieces);
}

void Delivery::tell(Kind kind, const Active& active, double time) noexcept {
  if (!setup_.options.on_event) return;
  (void)guard([&]() -> Status { return told_.events.push_back({kind, active.request->id, time}), Status(); });
}

bool Delivery::deliver(Active& active, Piece piece, double time) {
  PlannedRequest& planned = active.planned;
  accounts_.tenants.with([&](Tenants& tenants) { tenants.drawn(*active.tenant, 1); });
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
    if (active.request->on_piece) told_.pieces.emplace_back(active.request, RequestPiece{active.sample, std::move(piece)});
    else active.request->unread.push_back({active.sample, std::move(piece)});
    if (active.request->holds_back()) inbox_.look_again();
    note_reader(active.request);
  }
  note_token(active, is_first, time);
  return finish != FinishReason::none;
}

Result<bool> Delivery::deliver_search(Active& active, double time) {
  PlannedRequest& planned = active.planned;
  BeamSearch::State& search = *active.search;
  accounts_.tenants.with([&](Tenants& tenants) { tenants.drawn(*active.tenant, planned.beams); });
  planned.drawn = search.length();
  planned.computed = planned.prompt + planned.drawn - 1;
  bool is_first = false, is_new = false;  // is_new is false for a token that a restarted search draws again
  {
    const Lock lock(active.request->mutex);
    RequestFigures& own = active.request->figures;
    is_first = own.first_token < 0;
    if (is_first) own.first_token = time;
    is_new = std::exchange(own.tokens, std::max<std::uint64_t>(own.tokens, planned.drawn)) < planned.drawn;
  }
  if (is_new) {
    note_token(active, is_first, time);
    accounts_.figures.with([](SchedulerFigures& figures) { ++figures.tokens; });
  }
  if (!search.has_ended()) return false;
  TESSERA_TRY(std::vector<Beam> found, guard([&] { return search.results(); }));
  const Lock lock(active.request->mutex);
  if (!found.empty()) active.request->samples.front().finish = found.front().finish;
  active.request->beams = std::move(found);
  return true;
}

// Records the time of a new token for the latency figures. All beams of a search together count as one token.
void Delivery::note_token(Active& active, bool is_first, double time) {
  if (is_first) {
    tell(Kind::first_token, active, time);
    accounts_.figures.with([&](SchedulerFigures& figures) { figures.time_to_first_token.add(time - active.planned.submitted); });
  } else if (active.last_token > 0) {
    const double gap = time - active.last_token;
    if (!gaps_.empty() && gaps_.back().seconds == gap) ++gaps_.back().tokens;
    else gaps_.push_back({.seconds = gap, .tokens = 1});
  }
  active.last_token = time;
}

void Delivery::count_drafts(Active& active) noexcept {
  const Figures& all = active.decoding->figures();
  const std::size_t drafted = all.drafted - std::exchange(active.drafted, all.drafted);
  const std::size_t accepted = all.accepted - std::exchange(active.accepted, all.accepted);
  const std::size_t exited = all.exited - std::exchange(active.exited, all.exited);
  const std::size_t exit_tries = all.exit_tries - std::exchange(active.exit_tries, all.exit_tries);
  if (drafted == 0 && exit_tries == 0) return;
  const auto add = [&](auto& figures) {
    figures.drafted += drafted;
    figures.accepted += accepted;
    figures.exited += exited;
    figures.exit_tries += exit_tries;
  };
  {
    const Lock lock(active.request->mutex);
    add(active.request->figures);
  }
  accounts_.figures.with(add);
}

void Delivery::note_progress(Active& active, std::uint64_t computed, double time) noexcept {
  const Lock lock(active.request->mutex);
  RequestFigures& own = active.request->figures;
  const std::uint64_t before = active.planned.prompt - own.prompt_tokens, of_prompt = computed - std::min(computed, before);
  if (of_prompt <= own.computed_tokens) return;
  own.computed_tokens = of_prompt;
  own.progressed = time;
  if (active.request->tells_progress) note_reader(active.request);
}

void Delivery::count_step(double seconds, std::uint64_t rows, std::uint64_t tokens) noexcept {
  accounts_.figures.with([&](SchedulerFigures& figures) {
    ++figures.steps;
    figures.step.add(seconds);
    figures.rows.add(static_cast<double>(rows));
    figures.tokens += tokens;
    for (const Gap& gap : gaps_) figures.inter_token.add(gap.seconds, gap.tokens);
  });
}

void Delivery::fail(RequestHandle::State& request, const Error& error) noexcept {
  {
    const Lock lock(request.mutex);
    request.set_error(error);
  }
  inbox_.look_again();
}

void Delivery::end(Active& active, std::optional<Error> error) noexcept {
  const double time = host_.now();
  RequestHandle::State& request = *active.request;
  bool is_over = false, is_late = false, has_failed = false;
  RequestFigures own;
  engine_time_.measure([&] {
    if (active.decoding && !active.was_preempted() && active.decoding->finish_reason() == FinishReason::none) active.decoding->leave();
    active.decoding.reset();
    active.search.reset();
    if (!request.keeps_sessions) active.session.reset();
    if (active.session) release_adapters(state_of(*active.session));
  });
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
    has_failed = request.has_failed;
    note_reader(active.request);
  }
  if (!is_over && error) inbox_.look_again();  // the request's other samples must end too
  if (!is_over) return;
  if (active.tenant != nullptr) {  // nullptr: no step has taken the request from the inbox yet
    accounts_.tenants.with([&](Tenants& tenants) { tenants.ended(*std::exchange(active.tenant, nullptr)); });
  }
  tell(Kind::finished, active, time);
  accounts_.figures.with([&](SchedulerFigures& figures) {
    if (!has_failed) ++figures.finished;
    else if (error && error->code() == ErrorCode::cancelled) ++figures.cancelled;
    else ++figures.failed;
    figures.late += is_late ? 1 : 0;
    figures.reused_tokens += own.reused_tokens;
    figures.prompt_tokens += own.prompt_tokens;
    if (own.scheduled >= 0) figures.queue.add(own.scheduled - own.submitted);
    if (has_failed) return;
    figures.end_to_end.add(time - own.submitted);
    if (own.tokens > 1) figures.per_output_token.add((time - own.first_token) / static_cast<double>(own.tokens - 1));
  });
}

// Wakes a reader that waits in next(). If the request's on_ready callback is due, adds the request to the list of readers that are called
// after the step. Precondition: the caller holds the request's mutex.
void Delivery::note_reader(const std::shared_ptr<RequestHandle::State>& request) noexcept {
  const bool tells = request->on_ready && std::exchange(request->awaits_news, false);
  request->changed.notify_all();
  if (tells && !std::exchange(request->is_to_be_told, true)) request->told_after = std::exchange(told_.readers, request);
}

void Delivery::hand_out(Told& told) noexcept {
  for (auto& [request, piece] : told.pieces) {
    const Status called = guard([to = request.get(), what = &piece]() -> Status {
      return call_host("Request::on_piece", [&] { to->on_piece(*what); }), Status();
    });
    if (called) continue;
    {
      const Lock lock(request->mutex);
      request->set_error(called.error());
      request->is_cancelled = true;
    }
    inbox_.look_again();
  }
  tell_readers(told);
  for (const RequestEvent& event : told.events) host_.call("SchedulerOptions::on_event", [&] { setup_.options.on_event(event); });
  if (kv_watch_ != nullptr) tell_kv_events();
}

void Delivery::tell_readers(Told& told) noexcept {
  while (const auto request = std::exchange(told.readers, nullptr)) {
    {
      const Lock lock(request->mutex);
      told.readers = std::move(request->told_after);
      request->is_to_be_told = false;  // from now on another step may add the request to its own list
    }
    host_.call("Request::on_ready", [&] { request->on_ready(); });
  }
}

// Passes the KV events to the host, in order. Several threads may drive the scheduler, so only one thread at a time does this, for the
// events of all threads.
void Delivery::tell_kv_events() noexcept {
  bool more = true;
  while (more && !is_telling_.exchange(true)) {
    (void)guard([&]() -> Status {  // if memory is short, the next step delivers these events
      for (const KvEvent& event : kv_watch_->take()) {
        host_.call("SchedulerOptions::on_kv_event", [&] { setup_.options.on_kv_event(event); });
      }
      return {};
    });
    is_telling_.store(false);
    more = kv_watch_->has_events();  // events of threads that returned because this thread was delivering
  }
}

}  // namespace tessera::detail
