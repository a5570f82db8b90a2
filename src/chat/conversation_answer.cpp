// An answer: the session's generation, read by the output parser.
#include <deque>
#include <utility>

#include <tessera/sampling/sampler.hpp>

#include "chat/conversation.hpp"
#include "support/error.hpp"

namespace tessera {

using namespace detail;

namespace {

std::size_t count_calls(const ChatRequest& request) {
  std::size_t calls = 0;
  for (const Message& message : request.messages) calls += message.tool_calls.size();
  return calls;
}

// Nine letters and digits, which is what the strictest templates ask for.
std::string call_id(std::size_t number) { return fmt::format("call{:05}", number); }

}  // namespace

struct [[gnu::visibility("hidden")]] Answer::State {
  State(Conversation::State& conversation_, ReadSummary prompt_, OutputParser parser_, Generation generation_)
      : conversation(&conversation_),
        prompt(prompt_),
        calls_before(count_calls(conversation_.request)),
        parser(std::move(parser_)),
        generation(std::move(generation_)) {}

  [[nodiscard]] Result<Message> message() const;
  Status step();
  Status take(const Piece& piece);
  Status parse(std::string_view text);
  Status finish();
  void add(std::vector<OutputDelta> more);

  Conversation::State* conversation;
  ReadSummary prompt;
  std::size_t calls_before;
  OutputParser parser;
  std::optional<Generation> generation;  // none: it is over
  std::deque<OutputDelta> deltas;        // that are not delivered yet
  FinishReason reason = FinishReason::none;
  Figures figures;
};

Answer::Answer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

void Answer::State::add(std::vector<OutputDelta> more) {
  for (OutputDelta& delta : more) {
    if (delta.kind == OutputDelta::Kind::call_begin && delta.id.empty()) delta.id = call_id(calls_before + delta.call + 1);
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

Status Answer::State::parse(std::string_view text) {
  TESSERA_TRY(auto more, parser.push(text));
  add(std::move(more));
  return {};
}

Status Answer::State::take(const Piece& piece) {
  TESSERA_TRY_STATUS(parse(piece.text));
  if (piece.finish != FinishReason::end_of_generation) return {};
  // A token that ends the answer is text only where the format closes something with it.
  const std::string_view end = conversation->engine.tokenizer().text(piece.token);
  return conversation->format.closes_with(end) ? parse(end) : Status();
}

Status Answer::State::finish() {
  TESSERA_TRY(auto more, parser.finish());
  add(std::move(more));
  TESSERA_TRY(Message made, message());
  const bool nothing = made.content.empty() && made.reasoning.empty() && made.tool_calls.empty();
  if (!nothing || reason != FinishReason::cancelled) conversation->request.messages.push_back(std::move(made));
  return {};
}

// The next token, or the end.
Status Answer::State::step() {
  std::optional<Result<Piece>> piece = generation->next();
  if (piece && !*piece && piece->error().code() != ErrorCode::cancelled) return std::move(piece->error());
  if (piece && *piece) return take(**piece);
  figures = generation->figures();
  reason = piece ? FinishReason::cancelled : generation->finish_reason();
  generation.reset();
  return finish();
}

std::optional<Result<OutputDelta>> Answer::next() noexcept {
  if (state_ == nullptr) return Result<OutputDelta>(moved_from("answer"));
  const Status status = guard([&]() -> Status {
    while (state_->deltas.empty() && state_->generation) TESSERA_TRY_STATUS(state_->step());
    return {};
  });
  if (!status) {
    if (state_->generation) state_->figures = state_->generation->figures();
    state_->generation.reset();
    state_->deltas.clear();
    state_->reason = FinishReason::error;
    static_cast<void>(state_->conversation->session.truncate(state_->prompt.tokens));
    return Result<OutputDelta>(status.error());
  }
  if (state_->deltas.empty()) return std::nullopt;
  OutputDelta delta = std::move(state_->deltas.front());
  state_->deltas.pop_front();
  return Result<OutputDelta>(std::move(delta));
}

FinishReason Answer::finish_reason() const noexcept { return state_ != nullptr ? state_->reason : FinishReason::none; }
ReadSummary Answer::prompt() const noexcept { return state_ != nullptr ? state_->prompt : ReadSummary{}; }

Figures Answer::figures() const noexcept {
  if (state_ == nullptr) return {};
  return state_->generation ? state_->generation->figures() : state_->figures;
}

Result<Message> Answer::message() const noexcept {
  return guard([&]() -> Result<Message> {
    if (state_ == nullptr) return moved_from("answer");
    return state_->message();
  });
}

Result<Answer> Conversation::answer(Sampler& sampler, const AnswerOptions& options) noexcept {
  return guard([&]() -> Result<Answer> {
    if (state_ == nullptr) return moved_from("conversation");
    State& state = *state_;
    TESSERA_TRY(const State::Prompt prompt, state.prompt());
    TESSERA_TRY(OutputParser parser, OutputParser::create(state.format, {.starts_in_reasoning = prompt.in_reasoning,
                                                                         .tools = state.request.tools}));
    TESSERA_TRY_STATUS(sampler.status());
    TESSERA_TRY(const ReadSummary read, state.read(prompt.tokens, {.stop = options.stop, .progress = options.progress}));
    const std::size_t room = state.session.context() - prompt.tokens.size();
    const std::size_t most = options.max_tokens == 0 ? room : std::min(options.max_tokens, room);
    return Answer(std::make_unique<Answer::State>(state, read, std::move(parser),
                                                  state.session.generate(sampler, {.max_tokens = most, .control_text = ControlText::show, .stop = options.stop})));
  });
}

}  // namespace tessera
