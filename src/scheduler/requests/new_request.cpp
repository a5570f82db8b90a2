#include "scheduler/requests/new_request.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/sampling/chain.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/token_error.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/make_session.hpp"
#include "scheduler/step/drops.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint32_t kMostSamples = 1024;

Status check_beams(const Setup& setup, const Request& request, std::size_t tokens, std::size_t context) {
  TESSERA_TRY_STATUS(BeamSearch::State::check(*request.beams));
  const GenerateOptions& generate = request.generate;
  const bool is_plain = generate.max_tokens == 0 && generate.stop_tokens.empty() && generate.stop_strings.empty() &&
                        generate.end_of_generation == EndOfGeneration::stop && generate.control_text == ControlText::omit &&
                        generate.logprobs == 0 && !generate.stop.stop_possible() && generate.speculate.drafter == nullptr &&
                        generate.early_exit.layers == 0;
  if (request.sampler || request.samples != 1 || !is_plain) {
    return make_error(ErrorCode::invalid_argument,
                      "a request with beams has a sampler, samples or generate options: a search draws nothing, and its tokens and "
                      "ends are those of BeamOptions");
  }
  const KvOptions kv = setup.kv_options_of(request);
  if (kv.kind != KvKind::paged) {
    return make_error(ErrorCode::unsupported, "beams share pages, and the request's session has none: choose KvKind::paged");
  }
  if (kv.budget.tokens != 0) {
    return make_error(ErrorCode::unsupported, "beams keep all tokens, and the request's session has a budget of {}", kv.budget.tokens);
  }
  const auto most = BeamSearch::State::most_tokens(*request.beams, tokens, context);
  return most ? Status() : Status(most.error());
}

// Determines the request's adapters, and the position from which each one is active. This uses the whole prompt, so that the result does
// not depend on how steps divide the prompt.
Status set_adapters(const Setup& setup, Request& request, Active& active) {
  SequenceAdapters& adapters = active.adapters;
  if (request.session && !request.adapters) {
    adapters = adapters_of(state_of(*request.session));
  } else {
    TESSERA_TRY(adapters, make_adapters(request.adapters ? *request.adapters : request.session_options.adapters, *setup.shared));
  }
  request.session_options.adapters.clear();  // a new session gets Active::adapters when it is made
  adapters.invoke(request.prompt, request.session ? request.session->tokens().size() : 0);
  adapters.settle();
  return request.session ? use_adapters(state_of(*request.session), adapters) : Status();
}

}  // namespace

Status check(const Setup& setup, const Request& request) {
  if (request.session && request.session->context() == 0) return empty_handle("Session");
  const ModelSpec& spec = setup.engine.spec();
  for (const Token token : request.prompt) TESSERA_TRY_STATUS(detail::check_token(token, spec.vocab_size));
  if (request.session) {
    // status() is an error if a Generation or another thread uses the session.
    const Changing use(*view_of(state_of(*request.session)).use);
    TESSERA_TRY_STATUS(use.status());
  }
  const std::size_t before = request.session ? request.session->tokens().size() : 0;
  if (before + request.prompt.size() == 0) {
    return make_error(ErrorCode::invalid_argument, "the prompt is empty, and so is the session: there is nothing to go on from");
  }
  if (request.session && &request.session->engine().plan() != &setup.engine.plan()) {
    return make_error(ErrorCode::invalid_argument, "the request's session belongs to another engine");
  }
  if (request.samples == 0 || request.samples > kMostSamples) {
    return make_error(ErrorCode::invalid_argument, "{} samples; a request has 1 to {}", request.samples, kMostSamples);
  }
  if (!(request.deadline > 0.0)) {
    return make_error(ErrorCode::invalid_argument, "a deadline of {} seconds from now; give a positive number", request.deadline);
  }
  TESSERA_TRY_STATUS(make_adapters(request.adapters ? *request.adapters : request.session_options.adapters, *setup.shared));
  if (request.sampler) TESSERA_TRY_STATUS(check_sampler(*request.sampler, setup.engine));
  TESSERA_TRY_STATUS(TextState::check(request.generate));
  const std::uint64_t context = setup.context_of(request);
  if (!request.session && context > setup.engine.plan().context) {
    return make_error(ErrorCode::invalid_argument,
                      "session_options ask for a context of {} tokens, and the engine's is {}: ask for less, or load the engine with a "
                      "larger context",
                      context, setup.engine.plan().context);
  }
  if (before + request.prompt.size() >= context) {
    return make_error(ErrorCode::invalid_argument,
                      "a prompt of {} tokens leaves no room for an answer in a context of {}; shorten it, or give the engine a "
                      "larger context",
                      before + request.prompt.size(), context);
  }
  return request.beams ? check_beams(setup, request, before + request.prompt.size(), context) : Status();
}

Result<ActivePtr> make_active(const Setup& setup, Request request) {
  auto active = std::make_unique<Active>();
  auto handle = std::make_shared<RequestHandle::State>();
  const std::uint64_t before = request.session ? request.session->tokens().size() : 0;
  TESSERA_TRY_STATUS(set_adapters(setup, request, *active));
  PlannedRequest& planned = active->planned;
  if (request.beams) {
    planned.beams = request.beams->beams;
    request.generate.max_tokens = request.beams->max_tokens;
    request.generate.stop = request.beams->stop;
  }
  planned.prompt = before + request.prompt.size();
  if (request.session) {
    planned.computed = std::min<std::uint64_t>(request.session->position(), planned.prompt - 1);
    planned.suspended = request.session->suspended();
  }
  const std::uint64_t room_left = setup.context_of(request) - planned.prompt, wanted = request.generate.max_tokens;
  plan_drops(setup, request, wanted == 0 ? UINT64_MAX / 4 : wanted, *active);
  const std::uint64_t most = wanted == 0 ? room_left : planned.budget != 0 ? wanted : std::min(wanted, room_left);
  planned.expected = std::max<std::uint64_t>(most, 1) * request.samples;
  planned.priority = request.priority;

  handle->max_unread = std::max<std::size_t>(setup.options.max_unread, 1);
  handle->on_piece = std::move(request.on_piece);
  handle->on_ready = std::move(request.on_ready);
  handle->tells_progress = request.tells_progress;
  handle->samples.resize(request.samples);
  handle->samples_left = request.samples;
  handle->keeps_sessions = request.session_at_end == SessionAtEnd::keep;
  handle->figures.prompt_tokens = request.prompt.size();
  if (!request.sampler) {
    request.sampler = sampling::chain().greedy().build();
    if (!request.sampler->status()) return out_of_memory_error();  // a greedy sampler can have no other error
  }
  active->request = std::move(handle);
  active->forks = request.samples - 1;
  active->has_deadline = std::isfinite(request.deadline);
  active->wanted = std::move(request);
  return active;
}

Status check_size(const Setup& setup, const PlannedRequest& planned) {
  const std::uint64_t need = std::max(bytes_to_admit(planned, setup.page_cost, setup.options.limits.headroom),
                                      sequence_bytes(planned, setup.page_cost, planned.prompt + 1));
  const std::uint64_t budget = setup.inside.options.kv_budget;
  if (budget == 0 || need <= budget) return {};
  return make_error(ErrorCode::invalid_argument,
                    "a prompt of {} tokens and {} tokens to draw need {} bytes of KV pages, of a budget of {}: it can never "
                    "run. Shorten it, or give the engine a larger KV budget",
                    planned.prompt, planned.expected, need, budget);
}

}  // namespace tessera::detail
