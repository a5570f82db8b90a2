#include "conversation/conversation_answer.hpp"

#include <tessera/sampling/sampler.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

std::size_t count_calls(const ChatRequest& request) {
  std::size_t calls = 0;
  for (const Message& message : request.messages) calls += message.tool_calls.size();
  return calls;
}

// Returns the id of tool call number `number`. It has nine letters and digits, because the strictest templates accept no other ids.
std::string call_id(std::size_t number) { return fmt::format("call{:05}", number); }

// Converts the figures of a scheduler's request to the figures of a generation, which Answer::figures() returns for both.
Figures figures_of(const RequestFigures& f) {
  Figures figures{.prompt_tokens = f.prompt_tokens - f.reused_tokens, .tokens = f.tokens, .drafted = f.drafted, .accepted = f.accepted};
  if (f.first_token < 0) return figures;
  figures.time_to_first_token = figures.prompt_seconds = f.first_token - f.submitted;
  if (f.ended < 0) return figures;
  figures.generation_seconds = f.ended - f.first_token;
  if (f.ended > f.first_token) figures.tokens_per_second = static_cast<double>(f.tokens - 1) / (f.ended - f.first_token);
  return figures;
}

}  // namespace

Answer::State::State(std::shared_ptr<Conversation::State> conversation_, ReadSummary prompt_, OutputParser parser_)
    : conversation(std::move(conversation_)),
      prompt(prompt_),
      calls_before(count_calls(conversation->request)),
      parser(std::move(parser_)) {}

Answer::State::~State() {
  if (goes_on()) conversation->has_answer = false;
}

void Answer::State::begin(Generation from) noexcept {
  generation.emplace(std::move(from));
  conversation->has_answer = true;
}

void Answer::State::begin(RequestHandle from) noexcept {
  request.emplace(std::move(from));
  conversation->has_answer = true;
}

Answer::Answer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Answer::Answer() noexcept = default;
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

void Answer::State::add(std::vector<OutputDelta> more) {
  for (OutputDelta& delta : more) {
    if (delta.kind == OutputDelta::Kind::call_begin && delta.id.empty()) delta.id = call_id(calls_before + delta.call + 1);
    if (delta.kind == OutputDelta::Kind::call_begin) open_call_ = delta.call;
    if (delta.kind == OutputDelta::Kind::call_end) open_call_.reset();
    deltas.push_back(std::move(delta));
  }
}

Result<Message> Answer::State::message() const {
  TESSERA_TRY(Message message, parser.message());
  for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
    std::string& id = message.tool_calls[i].id;
    if (id.empty()) id = call_id(calls_before + i + 1);
  }
  return message;
}

Figures Answer::State::figures() const {
  if (generation) return generation->figures();
  return request ? figures_of(request->figures()) : figures_;
}

Status Answer::State::parse(std::string_view text) {
  TESSERA_TRY(auto more, parser.push(text));
  add(std::move(more));
  return {};
}

Status Answer::State::take(const Piece& piece) {
  TESSERA_TRY_STATUS(parse(piece.text));
  if (piece.finish != FinishReason::end_of_generation) return {};
  // The name of the token that ends the answer is not part of the piece's text. It is parsed too if it closes something in the format, such
  // as a tool call.
  const std::string_view end = conversation->engine.tokenizer().text(piece.token);
  return conversation->answer_format().closes_with(end) ? parse(end) : Status();
}

// Ends the source of the pieces (the generation or the request), so that no further pieces come. If a request has the session, takes it
// back.
void Answer::State::close() {
  if (!goes_on()) return;
  figures_ = figures();
  conversation->has_answer = false;
  generation.reset();
  if (!request) return;
  if (auto session = request->take_session()) {
    conversation->session = *std::move(session);
    conversation->session_is_lent = false;
  }
  request.reset();
}

Status Answer::State::finish() {
  TESSERA_TRY(auto more, parser.finish(output_end(reason)));
  add(std::move(more));
  // If the output's end cuts off a tool call, the parser writes no call_end. Adds a call_end that is `broken`, so that the reader knows
  // that the call is not complete.
  if (open_call_) add({{.kind = OutputDelta::Kind::call_end, .call = *open_call_, .broken = true}});
  TESSERA_TRY(Message made, message());
  const bool nothing = made.content.empty() && made.reasoning.empty() && made.tool_calls.empty();
  if (!nothing || reason != FinishReason::cancelled) conversation->request.messages.push_back(std::move(made));
  return {};
}

std::optional<Result<Piece>> Answer::State::next_piece() {
  if (generation) return generation->next();
  if (auto got = request->next()) return Result<Piece>(std::move(got->piece));
  if (auto status = request->status(); !status) return Result<Piece>(std::move(status).error());
  if (request->state() == RequestState::ended) return std::nullopt;
  return Result<Piece>(make_error(ErrorCode::busy, "the scheduler waits for who reads its other requests: read those first"));
}

Status Answer::State::step() {
  std::optional<Result<Piece>> piece = next_piece();
  if (piece && !*piece && piece->error().code() != ErrorCode::cancelled) return std::move(piece->error());
  if (piece && *piece) return take(**piece);
  reason = piece ? FinishReason::cancelled : generation ? generation->finish_reason() : request->finish_reason();
  close();
  return finish();
}

void Answer::State::fail() {
  close();
  deltas.clear();
  reason = FinishReason::error;
  if (!conversation->session_is_lent) static_cast<void>(conversation->session.truncate(prompt.tokens));
}

std::optional<OutputDelta> Answer::next() noexcept {
  if (state_ == nullptr) return std::nullopt;
  Status status = guard([&]() -> Status {
    while (state_->deltas.empty() && state_->goes_on()) TESSERA_TRY_STATUS(state_->step());
    return {};
  });
  if (!status) {
    state_->error = std::move(status).error();
    state_->fail();
  }
  if (state_->deltas.empty()) return std::nullopt;
  std::optional<OutputDelta> delta(std::move(state_->deltas.front()));
  state_->deltas.pop_front();
  return delta;
}

Status Answer::status() const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return empty_handle("Answer");
    return state_->error ? Status(*state_->error) : Status();
  });
}

FinishReason Answer::finish_reason() const noexcept { return state_ != nullptr ? state_->reason : FinishReason::none; }
ReadSummary Answer::prompt() const noexcept { return state_ != nullptr ? state_->prompt : ReadSummary{}; }
Figures Answer::figures() const noexcept { return state_ != nullptr ? state_->figures() : Figures{}; }

Result<Message> Answer::message() const noexcept {
  return guard([&]() -> Result<Message> {
    if (state_ == nullptr) return empty_handle("Answer");
    return state_->message();
  });
}

Result<Answer> Conversation::answer(Sampler& sampler, const AnswerOptions& options) noexcept {
  return guard([&]() -> Result<Answer> {
    if (state_ == nullptr) return empty_handle("Conversation");
    State& state = *state_;
    TESSERA_TRY_STATUS(state.no_answer());
    TESSERA_TRY(const State::Prompt prompt, state.prompt());
    TESSERA_TRY(OutputParser parser, OutputParser::create(state.answer_format(), {.starts_in_reasoning = prompt.in_reasoning,
                                                                         .tools = state.request.tools}));
    TESSERA_TRY_STATUS(sampler.status());
    TESSERA_TRY_STATUS(sampler.check_tokenizer(state.engine.tokenizer().fingerprint()));
    TESSERA_TRY(const ReadSummary read, state.read(prompt.tokens, {.stop = options.stop, .progress = options.progress}));
    const std::size_t room = state.context - prompt.tokens.size();
    const std::size_t most = options.max_tokens == 0 ? room : std::min(options.max_tokens, room);
    auto made = std::make_unique<Answer::State>(state_, read, std::move(parser));
    GenerateOptions generate{.max_tokens = most, .stop_strings = options.stop_strings, .stop_free = options.stop_free, .stop = options.stop,
                             .speculate = options.speculate, .early_exit = options.early_exit};
    TESSERA_TRY_STATUS(state.set_text_options(generate, prompt));
    made->begin(state.session.generate(sampler, generate));
    return Answer(std::move(made));
  });
}

}  // namespace tessera
