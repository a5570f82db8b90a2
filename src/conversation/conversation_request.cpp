// Answers that a scheduler computes, each as one of its requests.
#include <algorithm>

#include <tessera/scheduler/scheduler.hpp>

#include "conversation/conversation_answer.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/make_session.hpp"
#include "scheduler/setup.hpp"

namespace tessera {

using namespace detail;

namespace {

Status check_request(const Request& request) {
  const char* what = !request.prompt.empty() ? "a prompt" : request.session ? "a session" : request.on_piece ? "an on_piece" : nullptr;
  if (what != nullptr) {
    return make_error(ErrorCode::invalid_argument, "the request has {} of its own: leave that to the conversation", what);
  }
  if (request.samples != 1) {
    return make_error(ErrorCode::invalid_argument, "{} samples, and a conversation has one answer to a message", request.samples);
  }
  return {};
}

}  // namespace

Result<Session> Conversation::State::beginning(const Kept& kept) {
  if (session.suspended()) TESSERA_TRY_STATUS(session.resume());
  TESSERA_TRY(Session fork, session.fork());
  TESSERA_TRY_STATUS(keep(fork, kept));
  return fork;
}

Result<Answer> Conversation::answer(Scheduler& scheduler, Request request) noexcept {
  return guard([&]() -> Result<Answer> {
    if (state_ == nullptr) return empty_handle("Conversation");
    State& state = *state_;
    TESSERA_TRY_STATUS(state.no_answer());
    TESSERA_TRY_STATUS(check_request(request));
    TESSERA_TRY(const State::Prompt prompt, state.prompt());
    TESSERA_TRY(OutputParser parser, OutputParser::create(state.answer_format(), {.starts_in_reasoning = prompt.in_reasoning,
                                                                         .tools = state.request.tools}));
    TESSERA_TRY_STATUS(state.own_session());
    SequenceAdapters adapters = adapters_of(state_of(state.session));
    if (request.adapters) {
      TESSERA_TRY(adapters, make_adapters(*request.adapters, *view_of(state_of(state.session)).shared));
      request.adapters.reset();  // the request's session already has the adapters
    }
    const State::Kept kept = state.kept_of(prompt.tokens, adapters);
    TESSERA_TRY(request.session, state.beginning(kept));
    request.prompt.assign(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(kept.tokens), prompt.tokens.end());
    const std::size_t room = state.context - prompt.tokens.size(), most = request.generate.max_tokens;
    request.generate.max_tokens = most == 0 ? room : std::min(most, room);
    TESSERA_TRY_STATUS(state.set_text_options(request.generate, prompt));
    request.session_at_end = SessionAtEnd::keep;
    auto made = std::make_unique<Answer::State>(state_, ReadSummary{.tokens = prompt.tokens.size(), .kept = kept.tokens}, std::move(parser));
    TESSERA_TRY(RequestHandle submitted, scheduler.submit(std::move(request)));
    made->begin(std::move(submitted));
    // Destroys the conversation's own session, so that only the request holds the pages: a scheduler can preempt a request only if no other
    // session holds its pages.
    state.session_is_lent = true;
    const Session released = std::move(state.session);
    return Answer(std::move(made));
  });
}

}  // namespace tessera
