#include <tessera/chat/chat_template.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <mutex>
#include <utility>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/library/from_json.hpp"
#include "chat/jinja/syntax/parser.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

constexpr std::size_t kLongestTemplate = 1 << 20;

Error to_error(jinja::Failure&& failure) {
  std::string place = "chat template";
  if (failure.line != 0) place += fmt::format(", line {}", failure.line);
  if (!failure.construct.empty()) place += ", " + failure.construct;
  return {failure.code, std::move(failure.message), std::move(place)};
}

std::vector<RenderedSpan> to_spans(const jinja::Text& text) {
  std::vector<RenderedSpan> spans;
  text.for_each([&](std::string_view piece, TextOrigin origin) { spans.push_back({std::string(piece), origin}); });
  return spans;
}

}  // namespace

// The form of messages with calls that a template accepts. Found out by rendering test messages.
struct [[gnu::visibility("hidden")]] ChatTemplate::Calls {
  std::once_flag tried;
  bool empty_is_null = false, null_is_empty = false;  // empty_is_null: content "" must be replaced by null; null_is_empty: null by ""
  bool arguments_are_text = false;
  bool refuses_both = false;  // a message must not have both content and reasoning
};

namespace {

// Returns the key of a message under which the template reads the reasoning ("thinking", for example), if that key is not
// reasoning_content. Returns an empty text if it is reasoning_content, or if the template reads no reasoning; then nothing must be
// renamed.
std::string_view reasoning_key(std::string_view source) {
  if (source.find("reasoning_content") != source.npos) return {};
  for (const std::string_view key : {"thinking", "thought", "reasoning"}) {
    for (const auto& [before, behind] : {std::pair("message.", ""), std::pair("message['", "'"), std::pair("message[\"", "\"")}) {
      const std::string text = std::string(before).append(key).append(behind);
      const std::size_t at = source.find(text);
      if (at == source.npos) continue;
      const char next = at + text.size() < source.size() ? source[at + text.size()] : ' ';
      if (*behind != 0 || (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_')) return key;
    }
  }
  return {};
}

// Copies the reasoning of each message from reasoning_content to `key`, the template's own key for it. Templates with a key of their own
// expect the content of a message with calls to be a text, so null becomes "". `joins`: the template prints content and reasoning in the
// same place, and refuses a message that has content, reasoning and calls. Then the content is appended to the reasoning, and becomes
// empty.
void name_reasoning(Json& variables, std::string_view key, bool joins) {
  Json* messages = nullptr;
  for (auto& [name, value] : *variables.members()) {
    if (name == "messages") messages = &value;
  }
  if (messages == nullptr || messages->elements() == nullptr) return;
  for (Json& message : *messages->elements()) {
    const Json* reasoning = message.find("reasoning_content");
    const Json* content = message.find("content");
    const bool has_calls = message.find("tool_calls") != nullptr;
    if (content != nullptr && content->is_null() && has_calls) message.set("content", "");
    if (reasoning == nullptr || reasoning->string() == nullptr || reasoning->string()->empty() || message.find(key) != nullptr) continue;
    std::string text = *reasoning->string();
    content = message.find("content");
    if (joins && has_calls && content != nullptr && content->string() != nullptr && !content->string()->empty()) {
      text += "\n\n" + *content->string();
      message.set("content", "");
    }
    message.set(key, std::move(text));
  }
}

}  // namespace

struct [[gnu::visibility("hidden")]] ChatTemplate::State {
  std::string source;
  SpecialTexts special;
  jinja::Program program;
  std::unique_ptr<Calls> calls = std::make_unique<Calls>();  // filled in when a message with calls is first rendered
};

ChatTemplate::ChatTemplate(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, SpecialTexts special) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    if (source.size() > kLongestTemplate) {
      return error_at(ErrorCode::over_budget, "chat template", "a template of {} bytes; at most {} are read", source.size(),
                      kLongestTemplate);
    }
    try {
      return ChatTemplate(std::make_shared<const State>(State{std::string(source), std::move(special), jinja::parse(source)}));
    } catch (jinja::Failure& failure) {
      return to_error(std::move(failure));
    }
  });
}

Result<RenderedText> ChatTemplate::render(const Json& variables, const RenderOptions& options) const noexcept {
  return guard([&]() -> Result<RenderedText> {
    TESSERA_TRY_STATUS(status());
    if (variables.members() == nullptr) {
      return make_error(ErrorCode::invalid_argument, "a template's variables are an object with messages");
    }
    try {
      const std::uint64_t bytes = jinja::json_bytes(variables);
      const RenderLimits& limits = options.limits;
      jinja::Budget budget(limits.steps + 16 * bytes, limits.memory_bytes + 24 * bytes);
      jinja::Evaluator evaluator(state_->program, budget, options.now, limits.output_bytes + 8 * bytes);
      // Defaults of variables that the caller may leave out, as in transformers. (The caller's variables are defined below, and replace them.)
      evaluator.define("tools", jinja::Value::none());
      evaluator.define("documents", jinja::Value::none());
      evaluator.define("add_generation_prompt", jinja::Value::boolean(false));
      const auto define_special = [&](std::string_view name, const std::optional<std::string>& text) {
        if (text) evaluator.define(name, jinja::make_string(budget, *text));
      };
      define_special("bos_token", state_->special.bos);
      define_special("eos_token", state_->special.eos);
      define_special("pad_token", state_->special.pad);
      define_special("unk_token", state_->special.unk);
      for (const auto& [key, value] : *variables.members()) {
        const bool special = key == "bos_token" || key == "eos_token" || key == "pad_token" || key == "unk_token";
        if (special && value.string() != nullptr) {
          evaluator.define(key, jinja::make_string(budget, *value.string()));
        } else {
          evaluator.define(key, key == "messages" ? jinja::messages_from_json(budget, value)
                                                  : jinja::from_json(budget, value));
        }
      }
      return RenderedText{to_spans(evaluator.run())};
    } catch (jinja::Failure& failure) {
      return to_error(std::move(failure));
    }
  });
}

const ChatTemplate::Calls& ChatTemplate::calls() const {
  Calls& calls = *state_->calls;
  std::call_once(calls.tried, [&] {
    // Returns whether the template prints the tool call of a test message. `content`: the content of this message. `as_text`: the call's
    // arguments are a text; otherwise they are an object. `reasoning`: the key under which the message has a reasoning; empty: it has none.
    // Tries one conversation with the tool's answer after the call, and one without, because some templates need the answer.
    const auto writes = [&](const Json& content, bool as_text, std::string_view reasoning = {}) {
      constexpr const char* kWord = "tessera-probe";
      Json arguments = Json::object();
      arguments.set("word", kWord);
      ToolCall call{.id = "probe0001", .name = "probe", .arguments = as_text ? Json(arguments.dump()) : arguments};
      Message caller{.role = "assistant", .tool_calls = {std::move(call)}};
      if (content.is_null()) caller.extra.emplace_back("content", Json());
      else caller.content = *content.string();
      if (!reasoning.empty()) caller.extra.emplace_back(reasoning, "r");
      const Message question{.role = "user", .content = "?"}, answer{.role = "tool", .content = "!", .tool_call_id = "probe0001", .name = "probe"};
      for (const auto& messages : {std::vector<Message>{question, caller, answer}, {question, caller}}) {
        const ChatRequest request{.messages = messages};
        const auto text = render(request.to_json(), {.now = LocalTime{}});
        if (text && text->text().find(kWord) != std::string::npos) return true;
      }
      return false;
    };
    const Json empty(""), null;
    struct Way { bool null_content, as_text; };
    constexpr std::array<Way, 4> kForEmpty = {{{false, false}, {false, true}, {true, false}, {true, true}}};
    for (const Way way : kForEmpty) {
      if (!writes(way.null_content ? null : empty, way.as_text)) continue;
      calls.empty_is_null = way.null_content;
      calls.arguments_are_text = way.as_text;
      break;
    }
    if (const std::string_view key = reasoning_key(source()); !key.empty()) {
      calls.refuses_both = writes(empty, calls.arguments_are_text, key) && !writes(Json("c"), calls.arguments_are_text, key);
    }
    if (!calls.empty_is_null) calls.null_is_empty = !writes(null, calls.arguments_are_text) && writes(empty, calls.arguments_are_text);
  });
  return calls;
}

Result<RenderedText> ChatTemplate::render(const ChatRequest& request, const RenderOptions& options) const noexcept {
  return guard([&]() -> Result<RenderedText> {
    TESSERA_TRY_STATUS(status());
    const auto has_calls = [](const Message& message) { return !message.tool_calls.empty(); };
    ChatRequest shaped = request;
    for (Message& message : shaped.messages) {
      if (!has_calls(message)) continue;
      const Calls& way = calls();
      const auto content = std::ranges::find(message.extra, "content", &Json::Member::first);
      const bool is_null = content != message.extra.end() && content->second.is_null();
      if (is_null && way.null_is_empty) message.extra.erase(content);
      else if (content == message.extra.end() && message.content.empty() && message.parts.empty() && way.empty_is_null) message.extra.emplace_back("content", Json());
      for (ToolCall& call : message.tool_calls) {
        if (way.arguments_are_text && call.arguments.string() == nullptr) call.arguments = (call.arguments.is_null() ? Json::object() : call.arguments).dump();
      }
    }
    Json variables = shaped.to_json();
    const std::string_view key = reasoning_key(source());
    if (!key.empty()) name_reasoning(variables, key, std::ranges::any_of(shaped.messages, has_calls) && calls().refuses_both);
    return render(variables, options);
  });
}

Status ChatTemplate::status() const noexcept {
  if (state_ == nullptr) return empty_handle("ChatTemplate");
  return {};
}

std::string_view ChatTemplate::source() const noexcept { return state_ != nullptr ? state_->source : std::string_view(); }
const SpecialTexts& ChatTemplate::special_texts() const noexcept {
  static const SpecialTexts none;
  return state_ != nullptr ? state_->special : none;
}

std::string RenderedText::text() const {
  std::string whole;
  for (const RenderedSpan& span : spans) whole += span.text;
  return whole;
}

}  // namespace tessera
