// Requests that search: beams over the pages of one prompt. A search that gives way begins anew behind its prompt: it draws
// nothing, so it finds the same.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::guard;
using detail::make_error;
using Lock = std::unique_lock<std::mutex>;

Status Scheduler::State::check_beams(const Request& request, std::size_t tokens, std::size_t context) const {
  TESSERA_TRY_STATUS(BeamSearch::State::check(*request.beams));
  const GenerateOptions& generate = request.generate;
  const bool is_plain = generate.max_tokens == 0 && generate.stop_tokens.empty() && generate.stop_strings.empty() &&
                        generate.end_of_generation == EndOfGeneration::stop && generate.control_text == ControlText::omit &&
                        generate.logprobs == 0 && !generate.stop.stop_possible() && generate.speculate.drafter == nullptr;
  if (request.sampler || request.samples != 1 || !is_plain) {
    return make_error(ErrorCode::invalid_argument,
                      "a request with beams has a sampler, samples or generate options: a search draws nothing, and its tokens and "
                      "ends are those of BeamOptions");
  }
  const KvKind kind = request.session ? request.session->kv().kind()
                                      : detail::resolve(request.session_options.kv, shared->options.kv).kind;
  if (kind != KvKind::paged) {
    return make_error(ErrorCode::unsupported, "beams share pages, and the request's session has none: choose KvKind::paged");
  }
  const TokenBudget budget = request.session ? request.session->budget()
                                             : detail::resolve(request.session_options.kv, shared->options.kv).budget;
  if (budget.tokens != 0) {
    return make_error(ErrorCode::unsupported, "beams keep all tokens, and the request's session has a budget of {}", budget.tokens);
  }
  const auto most = BeamSearch::State::most_tokens(*request.beams, tokens, context);
  return most ? Status() : Status(most.error());
}

// All but the last token of the prompt is computed. The request's own session stays there, for a search that begins anew.
void Scheduler::State::begin_search(Active& active) noexcept {
  active.decoding->hand_prompt_over();
  const Status status = guard([&]() -> Status {
    TESSERA_TRY(Session first, active.session->fork());
    TESSERA_TRY(active.search, BeamSearch::State::begin(std::move(first), *active.wanted.beams));
    return {};
  });
  if (!status) fail(*active.request, status.error());
}

void Scheduler::State::give_search_up(Active& active) noexcept {
  if (!active.search) return;
  const std::uint64_t rows = active.search->rows();
  active.search.reset();
  active.planned.drawn = 0;
  active.planned.computed = active.planned.prompt - 1;
  {
    const Lock lock(active.request->mutex);
    active.request->figures.recomputed_tokens += rows;
  }
  const Lock lock(mutex);
  figures.recomputed_tokens += rows;
}

// After a step of the search.
void Scheduler::State::search_on(Active& active, double time) {
  PlannedRequest& planned = active.planned;
  BeamSearch::State& search = *active.search;
  note_drawn(active, planned.beams);
  planned.drawn = search.length();
  planned.computed = planned.prompt + planned.drawn - 1;
  bool is_first = false, is_new = false;  // one that begins anew comes by tokens that have been counted
  {
    const Lock lock(active.request->mutex);
    RequestFigures& own = active.request->figures;
    is_first = own.first_token < 0;
    if (is_first) own.first_token = time;
    is_new = std::exchange(own.tokens, std::max<std::uint64_t>(own.tokens, planned.drawn)) < planned.drawn;
  }
  if (is_new) {
    note_token(active, is_first, time);
    const Lock lock(mutex);
    ++figures.tokens;
  }
  if (!search.has_ended()) return;
  auto found = guard([&] { return search.results(); });
  if (!found) return end_running(active, found.error());
  {
    const Lock lock(active.request->mutex);
    if (!found->empty()) active.request->samples.front().finish = found->front().finish;
    active.request->beams = *std::move(found);
  }
  end_running(active, std::nullopt);
}

}  // namespace tessera
