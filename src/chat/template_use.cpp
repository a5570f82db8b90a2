#include <tessera/extend/chat/template_use.hpp>

#include <algorithm>

#include <tessera/extend/chat/output_parser.hpp>

#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view kTool = "get_value", kCity = "Reykjavik";
constexpr LocalTime kSomeTime{2026, 1, 2, 3, 4, 5};

Json tool() {
  return *Json::parse(R"({"type": "function", "function": {"name": "get_value", "description": "Gets it.", "parameters": {"type": "object",
      "properties": {"city": {"type": "string", "description": "c"}, "days": {"type": "integer", "description": "d"}},
      "required": ["city", "days"]}}})");
}

ChatRequest asking(bool with_system) {
  ChatRequest request;
  if (with_system) request.messages.push_back({.role = "system", .content = "Be brief."});
  request.messages.push_back({.role = "user", .content = "What is it?"});
  request.tools = {tool()};
  return request;
}

Result<std::string> rendered(const ChatTemplate& chat_template, const ChatRequest& request) {
  TESSERA_TRY(const RenderedText text, chat_template.render(request, {.now = kSomeTime}));
  return text.text();
}

// Returns the length of the common beginning of two texts, in bytes.
std::size_t common(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string tools_in_words(const std::vector<Json>& tools) {
  std::string text =
      "You may call one or more functions to assist with the user's request. The functions are these, as JSON within <tools></tools>:\n"
      "<tools>\n";
  for (const Json& one : tools) text += one.dump() + "\n";
  return text +
         "</tools>\nTo call a function, write a JSON object with its name and arguments within <tool_call></tool_call>:\n"
         "<tool_call>\n{\"name\": <function>, \"arguments\": <object>}\n</tool_call>";
}

// Puts `words` at the beginning of the first message of the user. If the content of that message is neither a text nor a list of parts,
// puts a new user message with the words in front of it. If there is no user message, adds one at the end.
void tell_user(std::vector<Message>& messages, const std::string& words) {
  const auto user = std::ranges::find(messages, "user", &Message::role);
  const bool is_known = user != messages.end() &&
                        std::ranges::none_of(user->extra, [](const Json::Member& member) { return member.first == "content"; });
  if (!is_known) messages.insert(user, {.role = "user", .content = words});
  else if (user->parts.empty()) user->content = words + "\n\n" + user->content;
  else user->parts.insert(user->parts.begin(), {.text = words + "\n\n"});
}

const OutputRegion* reasoning_of(const OutputFormat& format) {
  const auto region = std::ranges::find(format.regions, RegionKind::reasoning, &OutputRegion::kind);
  return region == format.regions.end() || region->close.empty() ? nullptr : &*region;
}

}  // namespace

Result<bool> prints_tools(const ChatTemplate& chat_template) noexcept {
  return guard([&]() -> Result<bool> {
    bool rendered_once = false;
    for (const bool with_system : {false, true}) {
      const auto text = rendered(chat_template, asking(with_system));
      if (text && text->find(kTool) != text->npos) return true;
      rendered_once |= text.has_value();
    }
    return !rendered_once && chat_template.source().find("tools") != std::string_view::npos;
  });
}

Result<bool> shows_system_message(const ChatTemplate& chat_template) noexcept {
  return guard([&]() -> Result<bool> {
    constexpr std::string_view kSystem = "tessera-system-probe", kUser = "tessera-user-probe";
    ChatRequest request;
    request.messages = {{.role = "system", .content = std::string(kSystem)}, {.role = "user", .content = std::string(kUser)}};
    const auto text = rendered(chat_template, request);
    return text && text->find(kUser, std::min(text->find(kSystem), text->size())) != text->npos;
  });
}

Status tell_tools_in_words(ChatRequest& request, ToolsIn where) noexcept {
  return guard([&]() -> Status {
    auto& messages = request.messages;
    for (Message& message : messages) {
      for (const ToolCall& call : message.tool_calls) {
        Json said = Json::object();
        said.set("name", call.name);
        said.set("arguments", call.arguments.is_null() ? Json::object() : call.arguments);
        if (!message.content.empty()) message.content += '\n';
        message.content += "<tool_call>\n" + said.dump() + "\n</tool_call>";
      }
      message.tool_calls.clear();
      // A message with calls may have a content of null, which is removed.
      std::erase_if(message.extra, [](const Json::Member& member) { return member.first == "content"; });
      if (message.role != "tool") continue;
      message.content = "<tool_response>\n" + message.content + "\n</tool_response>";
      message.role = "user";
      message.tool_call_id.clear();
      message.name.clear();
    }
    if (request.tools.empty()) return {};
    const std::string words = tools_in_words(request.tools);
    request.tools.clear();
    if (where == ToolsIn::user_message) {
      tell_user(messages, words);
      return {};
    }
    if (!messages.empty() && messages.front().role == "system" && messages.front().parts.empty()) messages.front().content += "\n\n" + words;
    else messages.insert(messages.begin(), {.role = "system", .content = words});
    return {};
  });
}

Result<CallCheck> check_calls(const ChatTemplate& chat_template, const OutputFormat& format) noexcept {
  return guard([&]() -> Result<CallCheck> {
    CallCheck check;
    Json arguments = Json::object();
    arguments.set("city", kCity);
    arguments.set("days", 17);
    ChatRequest asked = asking(false);
    asked.add_generation_prompt = false;
    const auto before = rendered(chat_template, asked);
    asked.add_generation_prompt = true;
    const auto prompt = rendered(chat_template, asked);
    asked.add_generation_prompt = false;
    asked.messages.push_back({.role = "assistant", .tool_calls = {{.id = "call00001", .name = std::string(kTool), .arguments = arguments}}});
    auto after = rendered(chat_template, asked);
    if (!after) {  // some templates print a call only if its result follows
      asked.messages.push_back({.role = "tool", .content = "A", .tool_call_id = "call00001", .name = std::string(kTool)});
      after = rendered(chat_template, asked);
    }
    if (!before || !prompt || !after) return check;
    std::string_view written = *after;
    written.remove_prefix(common(*before, written));
    const std::string_view header = std::string_view(*prompt).substr(common(*before, *prompt));
    std::size_t head = common(header, written);
    // The common beginning may end inside a marker. Moves `head` back to the end of the marker or line before, so that the answer does not
    // begin inside a marker.
    while (head < header.size() && head > 0 && header[head - 1] != '>' && header[head - 1] != '\n') --head;
    check.written = written;
    check.printed = written.find(kTool) != written.npos && written.find(kCity) != written.npos;
    if (!check.printed) return check;
    // Parses what the template has written as the answer. The answer begins after the end of the prompt. Some formats accept calls only
    // at the very beginning of the answer, so the answer is tried a second time, without its leading white space.
    for (const std::size_t from : {head, std::min(written.find_first_not_of(" \n", head), written.size())}) {
      TESSERA_TRY(OutputParser parser, OutputParser::create(format, {.starts_in_reasoning = format.ends_in_reasoning(header.substr(0, head)), .tools = {tool()}}));
      TESSERA_TRY_STATUS(parser.push(written.substr(from)));
      TESSERA_TRY_STATUS(parser.finish());
      TESSERA_TRY(const Message message, parser.message());
      check.read |= !message.tool_calls.empty() && message.tool_calls[0].name == kTool && message.tool_calls[0].arguments == arguments;
    }
    if (!check.read) {
      check.warning = fmt::format("The model's template writes calls in a form that the output format '{}' does not read, so calls may come as text. "
                                  "Give the format of its calls.", format.name);
    }
    return check;
  });
}

Result<bool> begin_answer(RenderedText& prompt, const OutputFormat& format, std::string_view begun) noexcept {
  return guard([&]() -> Result<bool> {
    const auto add = [&](std::string_view text, TextOrigin origin) {
      if (text.empty()) return;
      if (!prompt.spans.empty() && prompt.spans.back().origin == origin) prompt.spans.back().text += text;
      else prompt.spans.push_back({.text = std::string(text), .origin = origin});
    };
    const OutputRegion* region = reasoning_of(format);
    const std::string before = prompt.text();
    const bool is_open = format.ends_in_reasoning(before);
    if (format.header && !begun.empty() && !begun.starts_with(format.header->channel)) {
      const MessageHeader& header = *format.header;
      const auto text = std::find_if(header.channels.rbegin(), header.channels.rend(), [](const auto& channel) { return channel.kind == RegionKind::text; });
      if (text != header.channels.rend()) add(header.channel + text->name + header.end, TextOrigin::from_template);
      add(begun, TextOrigin::from_message);
      return false;
    }
    if (format.recipients && !begun.empty()) {
      if (before.ends_with(format.recipients->mark)) add(format.recipients->text, TextOrigin::from_template);
      add(begun, TextOrigin::from_message);
      return false;
    }
    if (region == nullptr || begun.empty()) {
      add(begun, TextOrigin::from_message);
      return is_open;
    }
    const std::string& close = region->close[0];
    std::string open = region->open[0];
    while (!open.empty() && open.back() == '\n') open.pop_back();
    const std::size_t first = std::min(begun.find_first_not_of(" \t\r\n"), begun.size());
    const bool opens = begun.substr(first).starts_with(open);
    bool in_reasoning = is_open;
    if (opens) {
      begun.remove_prefix(first + open.size());
      if (!is_open) add(open, TextOrigin::from_template);
      else if (before.ends_with('\n') && begun.starts_with('\n')) begun.remove_prefix(1);
      in_reasoning = true;
    }
    const std::size_t end = begun.find(close);
    if (in_reasoning && end != begun.npos) {
      add(begun.substr(0, end), TextOrigin::from_message);
      add(close, TextOrigin::from_template);
      begun.remove_prefix(end + close.size());
      in_reasoning = false;
    } else if (in_reasoning && !opens) {
      add((before.ends_with('\n') ? "\n" : "") + close + "\n\n", TextOrigin::from_template);
      in_reasoning = false;
    }
    add(begun, TextOrigin::from_message);
    return in_reasoning;
  });
}

}  // namespace tessera
