#include "chat/chat.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tessera/decoding/drafters.hpp>
#include <tessera/extend/chat/template_use.hpp>

#include "adapters.hpp"
#include "chat/chat_input.hpp"
#include "chat/chat_output.hpp"
#include "constraint.hpp"
#include "failure.hpp"
#include "model.hpp"
#include "modes.hpp"
#include "option_words.hpp"
#include "output/terminal.hpp"
#include "output/terminal_modes.hpp"
#include "prompt.hpp"
#include "sampler.hpp"
#include "terminal_text.hpp"

using tessera::Answer;
using tessera::Conversation;
using tessera::ErrorCode;
using tessera::FinishReason;
using tessera::Json;
using tessera::Message;

namespace {

std::string_view end_of_answer(FinishReason finish, bool full) {
  switch (finish) {
    case FinishReason::max_tokens: return full ? "cut, the context is full" : "as many as allowed";
    case FinishReason::cancelled: return "stopped";
    default: return "the end";
  }
}

// Prints a line of figures after an answer, on standard error.
void print_figures(const Answer& answer, const Conversation& conversation) {
  const tessera::Figures f = answer.figures();
  const tessera::ReadSummary prompt = answer.prompt();
  const std::size_t used = conversation.session().tokens().size(), context = conversation.session().context();
  std::string line = fmt::format("{} read, {} kept", prompt.tokens - prompt.kept, prompt.kept);
  line += fmt::format("; {} {} written", f.tokens, f.tokens == 1 ? "token" : "tokens");
  if (f.tokens > 0) line += fmt::format(", first after {}", human_seconds(f.time_to_first_token));
  if (f.tokens > 1) line += fmt::format(", {:.4g} tokens/s", f.tokens_per_second);
  fmt::print(stderr, "[{}; {} of {} tokens; {}]\n", line, used, context, end_of_answer(answer.finish_reason(), used >= context));
}

void check_choice(const std::string& choice, const Json::Array& tools) {
  if (choice == "auto" || choice == "none" || choice == "required") return;
  const auto has_name = [&](const Json& tool) {
    const Json* function = tool.find("function");
    const Json* name = (function != nullptr ? *function : tool).find("name");
    return name != nullptr && *name == Json(choice);
  };
  if (std::none_of(tools.begin(), tools.end(), has_name)) {
    throw UsageError(fmt::format("--tool-choice: \"{}\" is not one of auto|none|required, and no tool of the file", choice));
  }
}

tessera::ChatRequest first_request(const Options& options) {
  tessera::ChatRequest request;
  if (options.system) request.messages.push_back({.role = "system", .content = *options.system});
  if (options.think) request.arguments.emplace_back("enable_thinking", *options.think);
  if (!options.tools_file) return request;
  const Json tools = read_json(*options.tools_file);
  if (tools.elements() == nullptr) {
    throw Failure(ErrorCode::invalid_argument, fmt::format("{}: a list of tools was expected", *options.tools_file));
  }
  check_choice(options.tool_choice, *tools.elements());
  if (options.tool_choice != "none") request.tools = *tools.elements();
  return request;
}

Conversation open_conversation(const Options& options, const tessera::Engine& engine, tessera::ChatRequest request,
                               std::vector<tessera::AdapterUse> adapters) {
  tessera::ConversationOptions how{.render = {.now = local_time()}, .session = {.kv = options.kv, .adapters = std::move(adapters)}};
  if (options.template_file) {
    const auto special = tessera::SpecialTexts::from_settings(open_model(options)->settings());
    how.chat_template = value(tessera::ChatTemplate::parse(read_file(*options.template_file), value(special)));
  }
  return value(Conversation::create(engine, std::move(request), std::move(how)));
}

}  // namespace

Chat::Chat(const Options& options, Conversation conversation, std::vector<tessera::AdapterUse> adapters, Interrupts& interrupts,
           LineReader& lines, std::string model)
    : options_(options),
      conversation_(std::move(conversation)),
      interrupts_(interrupts),
      lines_(lines),
      model_(std::move(model)),
      adapters_(std::move(adapters)),
      constraint_(read_constraint(options)),
      most_reasoning_(options.most_reasoning),
      seed_(options.seed ? *options.seed : fresh_seed()) {
  if (!constraint_) return;
  const auto vocabulary = value(tessera::GrammarVocabulary::create(conversation_.session().engine().tokenizer()));
  compiled_ = value(tessera::CompiledGrammar::create(*constraint_, vocabulary));
}

void Chat::greet() const {
  if (lines_.is_terminal() && !asks_once()) {
    fmt::print(stderr, "{}, {} tokens of context. /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends.\n",
               tessera::tool::shown(model_),
               conversation_.session().context());
  }
  if (!conversation_.has_template()) complain("the model has no chat template: it reads the texts and goes on from them");
  if (!has_tools()) return;
  const auto check = tessera::check_calls(conversation_.chat_template(), conversation_.output_format());
  if (check && !check->warning.empty()) complain(check->warning);
}

// Returns the constraint of the next answer; nullopt: none. If --tool-choice demands a call, only the first answer to a user's message must
// be a call, so that the answer after the tool's result can be a text.
std::optional<tessera::Matcher> Chat::matcher() {
  if (compiled_) return value(tessera::Matcher::create(*compiled_));
  if (!has_tools()) return std::nullopt;
  const std::string& choice = options_.tool_choice;
  if (choice != "auto" && messages().back().role == "user") {
    auto matcher = value(conversation_.tool_matcher({.name = choice == "required" ? "" : choice}));
    warn_of_tools();
    return matcher;
  }
  auto matcher = conversation_.tool_matcher({.use = tessera::ToolUse::automatic});
  if (matcher) warn_of_tools();
  if (!matcher && matcher.error().code() == ErrorCode::unsupported) return std::nullopt;  // calls are not constrained
  return value(std::move(matcher));
}

// Prints each warning about a part of a tool's schema that the grammar cannot enforce, once.
void Chat::warn_of_tools() {
  for (const std::string& warning : conversation_.tool_warnings()) {
    if (std::ranges::find(told_warnings_, warning) != told_warnings_.end()) continue;
    complain(warning);
    told_warnings_.push_back(warning);
  }
}

tessera::Sampler Chat::sampler(std::optional<tessera::Matcher> matcher) const {
  std::optional<tessera::ReasoningBudget> budget;
  if (most_reasoning_) budget = value(conversation_.reasoning_budget({.tokens = *most_reasoning_}));
  return make_sampler(options_, seed_, std::move(matcher), std::move(budget));
}

void Chat::fail(std::string_view what) {
  complain(what);
  failed_ = true;
}

void Chat::forget_turn() {
  auto& list = messages();
  while (!list.empty() && list.back().role != "user" && list.back().role != "system") list.pop_back();
  if (!list.empty() && list.back().role == "user") list.pop_back();
}

// Reads the user's next message. A line that ends in a backslash continues with the next line. nullopt: there are no more lines.
std::optional<std::string> Chat::read_turn() {
  std::string text;
  for (bool more = false;;) {
    Line line = lines_.read(more ? "... " : "> ");
    if (line.kind == Line::Kind::interrupted) {
      if (!lines_.is_terminal()) throw Failure(ErrorCode::cancelled, "interrupted");
      fmt::print(stderr, "\n{}", text.empty() && line.text.empty() ? "(/quit or Ctrl-D ends the program)\n" : "");
      text.clear();
      more = false;
      continue;
    }
    if (line.kind == Line::Kind::end) return text.empty() ? std::nullopt : std::optional(std::move(text));
    if (line.text.ends_with('\r')) line.text.pop_back();
    more = line.text.ends_with('\\');
    if (more) line.text.back() = '\n';
    text += line.text;
    if (text.size() > kLongestLine) throw Failure(ErrorCode::invalid_argument, "a message of over 16 MiB");
    if (!more) return text;
  }
}

int Chat::run() {
  greet();
  if (asks_once()) {
    ask(read_prompt(options_));
    return failed_ ? 1 : 0;
  }
  while (!left_) {
    std::optional<std::string> text = read_turn();
    if (!text) {
      if (lines_.is_terminal()) fmt::print(stderr, "\n");
      break;
    }
    if (text->find_first_not_of(" \t\n") == std::string::npos) continue;
    if (text->starts_with("//")) text->erase(0, 1);  // the text begins with a slash
    else if (text->starts_with('/')) {
      try {
        if (command(*text) == Next::leave) break;
      } catch (const Failure& failure) {
        fail(in_options(failure.what()));
      }
      continue;
    }
    ask(*std::move(text));
  }
  return failed_ && !lines_.is_terminal() ? 1 : 0;
}

void Chat::ask(std::string text) {
  messages().push_back({.role = "user", .content = std::move(text)});
  answer();
}

// Answers until the model calls no more tools. If an answer fails, removes the user's turn again.
void Chat::answer() {
  try {
    while (answer_once()) {
      const std::vector<tessera::ToolCall> calls = messages().back().tool_calls;
      if (give_results(calls) == Next::go_on) continue;
      if (lines_.is_terminal()) complain("the turn is taken back: its call has no result");
      forget_turn();
      return;
    }
    settle();
  } catch (const Failure& failure) {
    if (failure.code != ErrorCode::cancelled) fail(in_options(failure.what()));
    else complain("stopped: the turn is taken back");
    forget_turn();
  }
}

// Removes messages that templates refuse: calls that will not be answered, and a turn without an answer.
void Chat::settle() {
  tessera::Message& last = messages().back();
  const std::size_t calls = last.tool_calls.size();
  std::erase_if(last.tool_calls, [&](const tessera::ToolCall& call) {
    return has_tools() || call.arguments.members() == nullptr;
  });
  const bool says_nothing = last.content.empty() && last.reasoning.empty() && last.tool_calls.empty();
  const bool lacks_result = calls > 0 && says_nothing;
  if (lacks_result) complain(fmt::format("the turn is taken back: {}", finish_ == FinishReason::max_tokens ? "its answer ended within a call (/set length N allows a longer answer)" : "its call was not run"));
  if (last.role == "user" || last.role == "tool" || lacks_result) forget_turn();
}

// Writes one answer. Returns whether the answer has calls that wait for results.
bool Chat::answer_once() {
  make_room();
  std::optional<tessera::Matcher> must_be = matcher();
  tessera::SpeculateOptions speculate;
  if (must_be) speculate.drafter = value(tessera::forced_drafter());
  tessera::Sampler drawing = sampler(std::move(must_be));
  const Interruptible work(interrupts_);
  ProgressBar bar("reading", ProgressBar::Unit::tokens);
  auto answer = value(conversation_.answer(drawing, {.max_tokens = options_.max_tokens.value_or(kLongestAnswer),
                                                     .stop_strings = options_.stop_strings,
                                                     .stop = work.token(),
                                                     .progress = [&](std::size_t done, std::size_t total) {
                                                       bar.update(done, total);
                                                       return true;
                                                     },
                                                     .speculate = speculate}));
  bar.finish();
  if (statistics_.answers == 0) tell_of_waiting(conversation_.session());
  AnswerPrinter printer;
  while (const auto delta = answer.next()) printer.add(*delta);
  printer.end();
  if (const tessera::Status status = answer.status(); !status) throw Failure(status.error());
  print_figures(answer, conversation_);
  finish_ = answer.finish_reason();
  const tessera::Figures figures = answer.figures();
  ++statistics_.answers;
  statistics_.read += answer.prompt().tokens - answer.prompt().kept;
  statistics_.kept += answer.prompt().kept;
  statistics_.tokens += figures.tokens;
  statistics_.seconds += figures.prompt_seconds + figures.generation_seconds;
  const auto& list = messages();
  if (!has_tools() || list.empty() || printer.had_broken_call() || answer.finish_reason() == FinishReason::cancelled) return false;
  const auto& calls = list.back().tool_calls;
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call.arguments.members() != nullptr; });
}

// Asks the user for the results of the calls, as JSON.
Chat::Next Chat::give_results(const std::vector<tessera::ToolCall>& calls) {
  for (const tessera::ToolCall& call : calls) {
    for (;;) {
      const Line line = lines_.read(fmt::format("{} gives (JSON)> ", tessera::tool::shown(call.name)));
      if (line.kind == Line::Kind::interrupted && !lines_.is_terminal()) throw Failure(ErrorCode::cancelled, "interrupted");
      if (line.kind != Line::Kind::text) {
        if (lines_.is_terminal()) fmt::print(stderr, "\n");
        left_ = line.kind == Line::Kind::end;
        if (left_ && !lines_.is_terminal()) fail(fmt::format("the lines end before an answer of {}", call.name));
        return Next::leave;
      }
      const auto json = Json::parse(line.text);
      if (!json) {
        fail(fmt::format("{}; a text stands in quotes", json.error().text()));
        continue;
      }
      const std::string result = json->string() != nullptr ? *json->string() : json->dump();
      messages().push_back({.role = "tool", .content = result, .tool_call_id = call.id, .name = call.name});
      break;
    }
  }
  return Next::go_on;
}

int converse(const Options& options) {
  (void)make_sampler(options, 0);  // reports wrong options before the model is read
  (void)read_constraint(options);
  tessera::ChatRequest request = first_request(options);
  Interrupts interrupts(IdleInterrupt::wakes, &TerminalModes::leave);
  const std::unique_ptr<LineReader> lines = make_line_reader(interrupts);  // keeps text that is typed from now on
  std::vector<tessera::AdapterUse> adapters;
  const auto engine = [&] {
    const Interruptible work(interrupts);
    tessera::Engine loaded = load_engine(options, work.token());
    adapters = load_adapters(options, loaded, work.token());
    return loaded;
  }();
  Chat chat(options, open_conversation(options, engine, std::move(request), adapters), adapters, interrupts, *lines,
            model_name(options, engine.metadata()));
  return chat.run();
}
