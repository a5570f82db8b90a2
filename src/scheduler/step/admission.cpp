#include "scheduler/step/admission.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "engine/session/edit.hpp"

namespace tessera::detail {

using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

Status Admission::admit(Active& active, double time) noexcept {
  return guard([&]() -> Status {
    if (!active.decoding) {
      TESSERA_TRY_STATUS(make_session(active));
      delivery_.tell(Kind::scheduled, active, time);
    } else {
      if (active.session->suspended()) {
        const double begin = HostCalls::steady_seconds();
        TESSERA_TRY_STATUS(active.session->resume());
        learnt_.observe_file(active.session->kv().bytes(), HostCalls::steady_seconds() - begin);
      } else {
        take_known(active);
      }
      delivery_.tell(Kind::resumed, active, time);
    }
    active.standing = Standing::running;
    active.planned.suspended = false;
    const Lock lock(active.request->mutex);
    active.request->phase = RequestState::running;
    return {};
  });
}

// If the request gave up its pages, takes back the pages that are still in the prefix index, so that the tokens of these pages need not be
// computed again.
void Admission::take_known(Active& active) {
  const std::uint64_t known = active.decoding->reuse_prefix(), lost = std::exchange(active.lost_tokens, 0);
  active.planned.computed = active.session->position();
  const std::uint64_t again = lost - std::min(lost, known);
  {
    const Lock lock(active.request->mutex);
    active.request->figures.recomputed_tokens += again;
  }
  accounts_.figures.with([&](SchedulerFigures& figures) { figures.recomputed_tokens += again; });
}

Status Admission::make_session(Active& active) {
  Request& wanted = active.wanted;
  if (wanted.session) {
    active.session = std::exchange(wanted.session, std::nullopt);
  } else if (!active.session) {
    TESSERA_TRY(Session made, setup_.engine.session(wanted.session_options));
    TESSERA_TRY_STATUS(use_adapters(state_of(made), active.adapters));
    active.session = std::move(made);
  }
  if (!active.sampler) active.sampler = std::exchange(wanted.sampler, std::nullopt);
  auto decoding = std::make_unique<Decoding>(state_of(*active.session), *active.sampler, wanted.generate, wanted.prompt);
  TESSERA_TRY_STATUS(decoding->start_drafting(DraftsChosen::by_caller));
  active.decoding = std::move(decoding);  // set only when complete: after an error, the next admission makes a new one
  const std::uint64_t reused = active.decoding->reuse_prefix();
  PlannedRequest& planned = active.planned;
  active.removed_before = view_of(state_of(*active.session)).removed;
  planned.computed = planned.prompt - std::max<std::uint64_t>(active.decoding->rows_wanted(), 1);
  const Lock lock(active.request->mutex);
  active.request->figures.reused_tokens += reused;
  return {};
}

void Admission::branch() noexcept {
  for (std::size_t i = 0; i < requests_.running().size(); ++i) {
    Active& active = *requests_.running()[i];
    if (active.planned.needed() != 1 || !active.branches()) continue;
    if (active.forks > 0) fork_samples(i);
    else if (!active.search) begin_search(active);
  }
}

// Forks a request's other samples from its first sample, so that all samples share the prompt's pages. Precondition: only the prompt's last
// token is not computed.
void Admission::fork_samples(std::size_t index) noexcept {
  Active& first = *requests_.running()[index];
  const std::uint32_t n = std::exchange(first.forks, 0);
  first.planned.expected = std::max<std::uint64_t>(first.planned.expected / (n + 1), 1);
  std::vector<ActivePtr> samples;
  const Status status = guard([&]() -> Status {
    const std::vector<Token> last(first.decoding->rest_of_prompt().begin(), first.decoding->rest_of_prompt().end());
    for (std::uint32_t i = 1; i <= n; ++i) {
      auto sample = std::make_unique<Active>();
      sample->request = first.request;
      sample->sample = i;
      sample->planned = first.planned;
      sample->tenant = first.tenant;
      sample->has_deadline = first.has_deadline;
      sample->probe = first.probe;
      sample->wanted.generate = first.wanted.generate;
      sample->removed_before = first.removed_before;
      sample->passed_bytes = first.passed_bytes;
      TESSERA_TRY(sample->session, first.session->fork());
      TESSERA_TRY(sample->sampler, first.sampler->clone());
      sample->sampler->reseed(first.sampler->seed(), first.sampler->stream() + i);
      sample->decoding = std::make_unique<Decoding>(state_of(*sample->session), *sample->sampler, sample->wanted.generate, last);
      TESSERA_TRY_STATUS(sample->decoding->start_drafting(DraftsChosen::by_caller));
      samples.push_back(std::move(sample));
    }
    requests_.make_room_to_run(n);
    return {};
  });
  if (status) {
    requests_.run_behind(index, std::move(samples));
    return;
  }
  {  // if memory is short, the request fails, and the next apply_wishes() ends it
    const Lock lock(first.request->mutex);
    first.request->set_error(status.error());
    first.request->samples_left -= n;
  }
  inbox_.look_again();
}

// Begins the beam search in a fork of the session. The session itself stays before the prompt's last token, so that the search can begin
// again after a preemption.
void Admission::begin_search(Active& active) noexcept {
  active.decoding->hand_prompt_over();
  const Status status = guard([&]() -> Status {
    TESSERA_TRY(Session first, active.session->fork());
    TESSERA_TRY(active.search, BeamSearch::State::begin(std::move(first), *active.wanted.beams));
    return {};
  });
  if (!status) delivery_.fail(*active.request, status.error());
}

}  // namespace tessera::detail
