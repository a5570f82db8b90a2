#include "conversation/conversation.hpp"

#include <algorithm>
#include <utility>

#include <tessera/extend/chat/template_use.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/session/edit.hpp"
#include "scheduler/setup.hpp"

namespace tessera {

using namespace detail;

Conversation::Conversation(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Conversation::Conversation() noexcept = default;
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

Result<Conversation> Conversation::create(const Engine& engine, ChatRequest request, ConversationOptions options) noexcept {
  return guard([&]() -> Result<Conversation> {
    if (engine.spec().vocab_size == 0) return empty_handle("Engine");
    if (engine.tokenizer().vocab_size() == 0) {
      return make_error(ErrorCode::unsupported, "a conversation needs the model's tokenizer, and this engine has none");
    }
    if (options.session.stream.window != 0) {
      return make_error(ErrorCode::unsupported, "a conversation drops messages, not tokens: leave StreamOptions::window 0");
    }
    const bool has_template = options.chat_template || engine.metadata().has(Setting::chat_template);
    if (!options.chat_template) {
      TESSERA_TRY(options.chat_template, chat_template_of(engine));
    }
    TESSERA_TRY_STATUS(options.chat_template->status());
    // If the template does not print tools, the tools are described in words in a message (tell_tools_in_words()), and answers are read in
    // the format "hermes", which this description asks for. Exception: if the host sets an output format, tools are not described, and
    // answers are read in the host's format.
    std::optional<OutputFormat> told;
    TESSERA_TRY(const bool prints, prints_tools(*options.chat_template));
    if (!prints && !options.output_format) {
      TESSERA_TRY(told, find_output_format("hermes"));
    }
    if (!options.output_format) {
      TESSERA_TRY(options.output_format, choose_output_format(*options.chat_template));
    }
    TESSERA_TRY_STATUS(OutputParser::create(*options.output_format));
    TESSERA_TRY(Session session, engine.session(options.session));
    if (session.budget().tokens != 0) {
      return make_error(ErrorCode::unsupported, "a conversation drops messages, not tokens: give its session no budget of tokens (kNoTokenBudget)");
    }
    const std::size_t context = session.context();
    auto state = std::make_shared<State>(State{engine, std::move(request), *std::move(options.chat_template), has_template,
                                               *std::move(options.output_format), options.render, options.session, std::move(session), context});
    state->tells_tools = told.has_value();
    if (told) {
      TESSERA_TRY(const bool shows_system, shows_system_message(state->chat_template));
      if (!shows_system) state->tools_in = ToolsIn::user_message;
    }
    state->told_format = std::move(told);
    return Conversation(std::move(state));
  });
}

Status Conversation::use_adapters(std::span<const AdapterUse> adapters) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return empty_handle("Conversation");
    TESSERA_TRY_STATUS(state_->no_answer());
    TESSERA_TRY_STATUS(state_->own_session());
    std::vector<AdapterUse> kept(adapters.begin(), adapters.end());
    TESSERA_TRY_STATUS(state_->session.use_adapters(adapters));
    state_->session_options.adapters = std::move(kept);
    return {};
  });
}

ChatRequest& Conversation::request() noexcept { return state_ == nullptr ? nothing_ : state_->request; }
const ChatRequest& Conversation::request() const noexcept { return state_ == nullptr ? nothing_ : state_->request; }
const Session& Conversation::session() const noexcept { return state_ == nullptr ? empty_value<Session>() : state_->session; }
const ChatTemplate& Conversation::chat_template() const noexcept {
  return state_ == nullptr ? empty_value<ChatTemplate>() : state_->chat_template;
}
const OutputFormat& Conversation::output_format() const noexcept {
  return state_ == nullptr ? empty_value<OutputFormat>() : state_->format;
}
bool Conversation::has_template() const noexcept { return state_ != nullptr && state_->has_template; }

Result<Conversation::State::Prompt> Conversation::State::whole_prompt() const {
  ChatRequest told = request;
  if (tells_tools) TESSERA_TRY_STATUS(tell_tools_in_words(told, tools_in));
  TESSERA_TRY(const RenderedText rendered, chat_template.render(told, render));
  Prompt prompt{.in_reasoning = answer_format().ends_in_reasoning(rendered.text())};
  TESSERA_TRY(prompt.tokens, rendered.encode(engine.tokenizer()));
  if (prompt.tokens.empty()) {
    return make_error(ErrorCode::invalid_argument, "the template makes no text of these messages: there is nothing to answer");
  }
  return prompt;
}

Result<Conversation::State::Prompt> Conversation::State::prompt() const {
  TESSERA_TRY(Prompt prompt, whole_prompt());
  if (prompt.tokens.size() >= context) {
    return make_error(ErrorCode::cache_full,
                      "the conversation has {} tokens, and the context {}: drop messages, or make the context larger",
                      prompt.tokens.size(), context);
  }
  return prompt;
}

Status Conversation::State::no_answer() const {
  if (!has_answer) return {};
  return make_error(ErrorCode::invalid_state, "an Answer of this conversation has not ended: read it to its end, or destroy it first");
}

Status Conversation::State::set_text_options(GenerateOptions& options, const Prompt& prompt) const {
  const OutputFormat& form = answer_format();
  options.control_text = ControlText::show;
  if (!options.shown_control) {
    TESSERA_TRY(options.shown_control, marker_tokens(engine.tokenizer(), form));
  }
  if (!options.stop_free && !options.stop_strings.empty()) {
    TESSERA_TRY(std::vector<MarkedText> stretches, reasoning_stretches(form));
    options.stop_free = StopFree{.stretches = std::move(stretches), .starts_inside = prompt.in_reasoning};
  }
  return {};
}

Status Conversation::State::own_session() {
  if (!session_is_lent) return {};
  TESSERA_TRY(session, engine.session(session_options));
  session_is_lent = false;
  return {};
}

Conversation::State::Kept Conversation::State::kept_of(std::span<const Token> tokens, const SequenceAdapters& adapters) const {
  Kept kept{.adapters = adapters.placed_in(tokens)};
  const std::span<const Token> have = session.tokens();
  const auto same = std::mismatch(have.begin(), have.end(), tokens.begin(), tokens.end()).first - have.begin();
  kept.tokens = static_cast<std::size_t>(std::min(static_cast<std::uint64_t>(same), adapters_of(state_of(session)).first_difference(kept.adapters)));
  return kept;
}

Status Conversation::State::keep(Session& session, const Kept& kept) {
  TESSERA_TRY_STATUS(session.truncate(kept.tokens));
  return detail::use_adapters(state_of(session), kept.adapters);
}

Result<ReadSummary> Conversation::State::read(std::span<const Token> tokens, const ReadOptions& options) {
  TESSERA_TRY_STATUS(own_session());
  if (session.suspended()) TESSERA_TRY_STATUS(session.resume());
  const Kept kept = kept_of(tokens, adapters_of(state_of(session)));
  const AppendOptions append{.stop = options.stop, .progress = options.progress};
  const auto rest = tokens.subspan(kept.tokens);
  // The tokens are appended to a fork, which becomes the session only at the end. So the session is unchanged if the append fails. A fork
  // needs hardly any memory.
  const bool changes = kept.tokens < session.tokens().size() || adapters_of(state_of(session)).first_difference(kept.adapters) != UINT64_MAX;
  if (changes && session.kv().kind() == KvKind::paged) {
    TESSERA_TRY(Session fork, session.fork());
    TESSERA_TRY_STATUS(keep(fork, kept));
    TESSERA_TRY_STATUS(fork.append(rest, append));
    session = std::move(fork);
  } else {
    TESSERA_TRY_STATUS(keep(session, kept));
    TESSERA_TRY_STATUS(session.append(rest, append));
  }
  return ReadSummary{.tokens = tokens.size(), .kept = kept.tokens};
}

Result<std::vector<Token>> Conversation::prompt() const noexcept {
  return guard([&]() -> Result<std::vector<Token>> {
    if (state_ == nullptr) return empty_handle("Conversation");
    TESSERA_TRY(State::Prompt prompt, state_->prompt());
    return std::move(prompt.tokens);
  });
}

Result<Matcher> Conversation::tool_matcher(ToolGrammarOptions options) noexcept {
  return guard([&]() -> Result<Matcher> {
    if (state_ == nullptr) return empty_handle("Conversation");
    State& state = *state_;
    TESSERA_TRY(const State::Prompt prompt, state.prompt());
    options.starts_in_reasoning = prompt.in_reasoning;
    const std::string key = options.key() + Json(state.request.tools).dump();
    if (!state.compiled || state.compiled_key != key) {
      if (!state.vocabulary) {
        TESSERA_TRY(state.vocabulary, tool_vocabulary(state.engine.tokenizer(), state.answer_format()));
      }
      TESSERA_TRY(ToolGrammar held, held_tool_grammar(state.answer_format(), state.request.tools, options));
      TESSERA_TRY(CompiledGrammar compiled, CompiledGrammar::create(held.grammar, *state.vocabulary));
      state.compiled = std::move(compiled);
      state.compiled_warnings = std::move(held.warnings);
      state.compiled_key = key;
    }
    return Matcher::create(*state.compiled);
  });
}

std::span<const std::string> Conversation::tool_warnings() const noexcept {
  return state_ == nullptr ? std::span<const std::string>() : std::span<const std::string>(state_->compiled_warnings);
}

Result<ReasoningBudget> Conversation::reasoning_budget(ReasoningBudgetOptions options) const noexcept {
  return guard([&]() -> Result<ReasoningBudget> {
    if (state_ == nullptr) return empty_handle("Conversation");
    TESSERA_TRY(const State::Prompt prompt, state_->prompt());
    options.starts_in_reasoning = prompt.in_reasoning;
    return ReasoningBudget::create(state_->engine.tokenizer(), state_->answer_format(), options);
  });
}

Result<ReadSummary> Conversation::read(const ReadOptions& options) noexcept {
  return guard([&]() -> Result<ReadSummary> {
    if (state_ == nullptr) return empty_handle("Conversation");
    TESSERA_TRY_STATUS(state_->no_answer());
    TESSERA_TRY(const State::Prompt prompt, state_->prompt());
    return state_->read(prompt.tokens, options);
  });
}

}  // namespace tessera
