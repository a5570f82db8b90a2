// Requests as agents send them: the shapes are those of Claude Code's and Codex's public documents and reports, with their texts
// made short. Each is answered, and has the effect that its client counts on.
#include <fstream>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_agents {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

// A server whose model has this template.
class TemplateServer {
 public:
  explicit TemplateServer(const std::string& source) {
    const std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera-agents-{}", getpid())).string();
    std::ofstream(path) << source;
    server_.emplace(std::vector<std::string>{"--no-log", "--template", path});
    std::filesystem::remove(path);
  }
  const RunningServer* operator->() const { return &*server_; }
  const RunningServer& operator*() const { return *server_; }

 private:
  std::optional<RunningServer> server_;
};

const std::string kPlainTemplate = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
// Writes the names of tools alone, so that all of it fits into a small context.
const std::string kNames = "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}";
const std::string kToolsTemplate = kNames + kPlainTemplate + "{# <tool_call>{\"name\", \"arguments\"}</tool_call> #}";
// As Qwen's of 2026: one system message, in front.
const std::string kFrontTemplate =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
// As Gemma's: no system message, and turns by turns.
const std::string kTurnsTemplate =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

Json answered(const RunningServer& server, const std::string& path, const std::string& body) {
  const Response response = server.post(path, body);
  INFO(path << ": " << response.body);
  REQUIRE(response.status == 200);
  return response.json();
}

std::string prompt_of(const RunningServer& server, const std::string& messages) {
  return text_at(answered(server, "/apply-template", R"({"messages": )" + messages + "}"), {"prompt"});
}
std::int64_t tokens_of(const RunningServer& server, const std::string& text) {
  return number_at(answered(server, "/tokenize", R"({"add_special_tokens": false, "prompt": )" + Json(text).dump() + "}"), {"count"});
}

const std::string kClaudeCode = R"("model": "claude-sonnet-4-5-20250929", "max_tokens": 16, "stream": true, "temperature": 1,
  "system": [{"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
             {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
  "metadata": {"user_id": "user_1_account__session_2"},
  "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"},
  "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "betas": ["context-management-2025-06-27"],
  "tools": [{"name": "Bash", "description": "Runs a command", "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
               "properties": {"command": {"type": "string"}}, "required": ["command"], "additionalProperties": false}, "defer_loading": true,
               "eager_input_streaming": true, "cache_control": {"type": "ephemeral"}},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}])";
const std::string kClaudeTurns = R"("messages": [
    {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "list files", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking", "data": "Zm9v"}, {"type": "text", "text": "Yes."},
      {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}, "caller": {"type": "direct"}}]},
    {"role": "user", "content": [{"tool_use_id": "t1", "type": "tool_result", "content": [{"type": "text", "text": "a.txt"}, {"type": "tool_reference", "tool_name": "Read"}], "is_error": false}]},
    {"role": "assistant", "content": null}, {"role": "system", "content": "Todo list is empty."}, {"role": "user", "content": "go on"}])";

const std::string kPatchGrammar =
    "start: begin_patch hunk+ end_patch\nbegin_patch: \"*** Begin Patch\" LF\nend_patch: \"*** End Patch\" LF?\n\nhunk: add_hunk | delete_hunk | update_hunk\n"
    "add_hunk: \"*** Add File: \" filename LF add_line+\ndelete_hunk: \"*** Delete File: \" filename LF\n"
    "update_hunk: \"*** Update File: \" filename LF change_move? change?\n\nfilename: /(.+)/\nadd_line: \"+\" /(.*)/ LF -> line\n\n"
    "change_move: \"*** Move to: \" filename LF\nchange: (change_context | change_line)+ eof_line?\nchange_context: (\"@@\" | \"@@ \" /(.+)/) LF\n"
    "change_line: (\"+\" | \"-\" | \" \") /(.*)/ LF\neof_line: \"*** End of File\" LF\n\n%import common.LF\n";

std::string codex_tools(const std::string& grammar) {
  return R"("tools": [{"type": "function", "name": "exec_command", "description": "Runs a command", "strict": false, "parameters": {"type": "object",
      "properties": {"cmd": {"type": "string"}}, "required": ["cmd"], "additionalProperties": false}},
    {"type": "custom", "name": "apply_patch", "description": "Edits files", "format": {"type": "grammar", "syntax": "lark", "definition": )" +
         Json(grammar).dump() + R"(}},
    {"type": "web_search", "external_web_access": false, "search_content_types": ["text", "image"]},
    {"type": "namespace", "name": "mcp__files", "description": "Files", "tools": [{"type": "function", "name": "read", "strict": false, "defer_loading": true,
      "parameters": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}}]}])";
}
const std::string kCodex = R"("model": "gpt-5-codex", "instructions": "You are Codex.", "parallel_tool_calls": false, "reasoning": {"effort": "medium", "summary": "auto"},
  "store": false, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199", "client_metadata": {"x-codex-installation-id": "y"},
  "text": {"verbosity": "low"}, "service_tier": "priority")";
const std::string kCodexInput = R"("input": [
  {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
  {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
  {"type": "reasoning", "id": "rs_1", "summary": [], "content": null, "encrypted_content": "Zm9v"},
  {"type": "function_call", "id": "fc_1", "name": "read", "namespace": "mcp__files", "arguments": "{\"n\": 1}", "call_id": "c1"},
  {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "done"}]},
  {"type": "custom_tool_call", "id": "ctc_1", "status": "completed", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"},
  {"type": "custom_tool_call_output", "call_id": "c2", "output": "applied"},
  {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
  {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}])";

}  // namespace

TEST_CASE("Claude Code's request is answered, and count_tokens counts all of it", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kToolsTemplate);
  Connection connection(server->port());
  connection.send_request("POST", "/v1/messages?beta=true", {{"anthropic-beta", "claude-code-20250219"}}, "{" + kClaudeCode + ", " + kClaudeTurns + "}");
  const Response head = connection.receive_head();
  REQUIRE(head.status == 200);
  const std::string ignored = head.header("x-tessera-ignored");
  for (const char* part : {"metadata", "betas", "tools[].defer_loading", "tools[1] (web_search_20250305)", "messages[1].content[3] (server_tool_use)",
                           "messages[2].content[0].content[1] (tool_reference)"}) {
    INFO(part << " in " << ignored);
    CHECK(ignored.find(part) != std::string::npos);
  }
  const auto events = connection.all_events();
  REQUIRE(events.size() > 3);
  CHECK(events.back().event == "message_stop");
  CHECK(text_at(events.front().json(), {"message", "model"}) == "tessera-stories");
  const Json counted = answered(*server, "/v1/messages/count_tokens", "{" + kClaudeCode + ", " + kClaudeTurns + "}");
  CHECK(number_at(counted, {"input_tokens"}) == number_at(events.front().json(), {"message", "usage", "input_tokens"}));
  // Every turn is in the prompt: each one that is taken out makes it shorter.
  const auto count = [&](const std::string& messages) { return number_at(answered(*server, "/v1/messages/count_tokens", R"({"messages": [)" + messages + "]}"), {"input_tokens"}); };
  const std::string hi = R"({"role": "user", "content": "hi"}, )", note = R"({"role": "system", "content": "note"}, )", go = R"({"role": "user", "content": "go"})";
  CHECK(count(hi + note + go) == tokens_of(*server, "[user]hi\n[system]note\n[user]go\n[assistant]"));
  CHECK(answered(*server, "/v1/messages", R"({"max_tokens": 8, "messages": [)" + hi + note + go + R"(], "tools": [{"name": "t", "input_schema": {"type": "object"}, "defer_loading": true}],
    "context_management": {"edits": []}})").find("content") != nullptr);
}

TEST_CASE("thinking that is omitted leaves an empty block", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server("{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}");
  const auto block = [&](const std::string& display) {
    return at(answered(*server, "/v1/messages", R"({"max_tokens": 6, "temperature": 0, "messages": [{"role": "user", "content": "Once"}], "thinking": {"type": "adaptive", "display": ")" + display + "\"}}"),
              {"content", "0"});
  };
  CHECK(!text_at(block("summarized"), {"thinking"}).empty());
  CHECK(text_at(block("omitted"), {"type"}) == "thinking");
  CHECK(text_at(block("omitted"), {"thinking"}).empty());
}

TEST_CASE("Codex's request is answered: its functions can be called, tools of a service are left out", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kToolsTemplate);
  const std::string body = "{" + kCodex + ", " + codex_tools(kPatchGrammar) + ", " + kCodexInput;
  const Response whole = server->post("/v1/responses", body + R"(, "tool_choice": "auto", "max_output_tokens": 8})");
  INFO(whole.body);
  REQUIRE(whole.status == 200);
  const std::string ignored = whole.header("x-tessera-ignored");
  for (const char* part : {"client_metadata", "prompt_cache_key", "store", "tools[2] (web_search)", "input[7] (web_search_call)"}) {
    INFO(part << " in " << ignored);
    CHECK(ignored.find(part) != std::string::npos);
  }
  CHECK(at(whole.json(), {"tools"}).elements()->size() == 4);

  const Json called = answered(*server, "/v1/responses", body + R"(, "tool_choice": {"type": "function", "namespace": "mcp__files", "name": "read"}, "temperature": 0, "reasoning": {"effort": "none"}, "max_output_tokens": 120})");
  CHECK(text_at(called, {"output", "0", "type"}) == "function_call");
  CHECK(text_at(called, {"output", "0", "name"}) == "read");
  CHECK(text_at(called, {"output", "0", "namespace"}) == "mcp__files");

  const Json patched = answered(*server, "/v1/responses", body + R"(, "tool_choice": {"type": "custom", "name": "apply_patch"}, "temperature": 0, "reasoning": {"effort": "none"}, "max_output_tokens": 200})");
  CHECK(text_at(patched, {"output", "0", "type"}) == "custom_tool_call");
  CHECK(text_at(patched, {"output", "0", "name"}) == "apply_patch");
  INFO(text_at(patched, {"output", "0", "input"}));
  CHECK(text_at(patched, {"output", "0", "input"}).starts_with("*** Begin Patch\n*** "));
}

TEST_CASE("a custom tool's input is what its grammar says, streamed in events of its own", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  const std::string grammar = "start: verb \" \" NUMBER LF \"\\\"q\\\"\"?\nverb: \"go\" | \"stop\" // a comment\nNUMBER: /[0-9]{2}/\n%import common.LF\n";
  const std::string body = R"({"input": "Hello", "temperature": 2, "reasoning": {"effort": "none"}, "max_output_tokens": 150, "tool_choice": "required", "parallel_tool_calls": false, "tools": [{"type": "custom", "name": "move", "format": {"type": "grammar", "syntax": )";
  for (int seed = 0; seed < 3; ++seed) {
    Connection connection(server.port());
    connection.send_request("POST", "/v1/responses", {}, body + R"("lark", "definition": )" + Json(grammar).dump() + fmt::format(R"(}}}}], "stream": true, "seed": {}}})", seed));
    REQUIRE(connection.receive_head().status == 200);
    std::string delta, done, item;
    for (const ServerEvent& event : connection.all_events()) {
      if (event.event == "response.custom_tool_call_input.delta") delta += text_at(event.json(), {"delta"});
      if (event.event == "response.custom_tool_call_input.done") done = text_at(event.json(), {"input"});
      if (event.event == "response.output_item.done" && text_at(event.json(), {"item", "type"}) == "custom_tool_call") item = text_at(event.json(), {"item", "input"});
    }
    INFO(done);
    CHECK(delta == done);
    CHECK(item == done);
    CHECK((done.starts_with("go ") || done.starts_with("stop ")));
    REQUIRE(done.find('\n') != std::string::npos);
    CHECK(done.find('\n') == done.find(' ') + 3);
  }
  const Json regex = answered(server, "/v1/responses", body + R"("regex", "definition": "ab|cd"}}]})");
  const std::string input = text_at(regex, {"output", "0", "input"});
  CHECK((input == "ab" || input == "cd"));
  const auto refused = [&](const std::string& definition) {
    const Response response = server.post("/v1/responses", body + R"("lark", "definition": )" + Json(definition).dump() + "}}]}");
    CHECK(response.status == 400);
    CHECK(text_at(response.json(), {"error", "param"}) == "tools[0].format.definition");
    return text_at(response.json(), {"error", "message"});
  };
  CHECK(refused("start: \"(\" start \")\" | \"x\"").find("refers to itself") != std::string::npos);
  CHECK(refused("start: other").find("no rule \"other\"") != std::string::npos);
  CHECK(refused("start: \"a").find("no end") != std::string::npos);
  CHECK(refused("start: \"a\"\n%ignore WS").find("Line 2") != std::string::npos);
  CHECK(refused("begin: \"a\"").find("start") != std::string::npos);
}

TEST_CASE("Codex's probe, and what needs a store", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kTurnsTemplate);
  CHECK(text_at(answered(*server, "/v1/responses", R"({"input": [], "max_output_tokens": 1})"), {"object"}) == "response");
  CHECK(text_at(answered(*server, "/v1/responses", R"({"input": [], "instructions": "i", "store": true, "max_output_tokens": 1})"), {"store"}) == "false");
  const Response earlier = server->post("/v1/responses", R"({"input": "a", "previous_response_id": "resp_1"})");
  CHECK(earlier.status == 400);
  CHECK(text_at(earlier.json(), {"error", "param"}) == "previous_response_id");
  // Reports' shapes of tools without parameters.
  for (const char* function : {R"({"name": "now"})", R"({"name": "now", "parameters": {}})", R"({"name": "now", "parameters": null})"}) {
    const Json called = answered(*server, "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 60, "temperature": 0, "parallel_tool_calls": false,
      "tool_choice": {"type": "function", "function": {"name": "now"}}, "tools": [{"type": "function", "function": )" + std::string(function) + "}]}");
    CHECK(text_at(called, {"choices", "0", "message", "tool_calls", "0", "function", "name"}) == "now");
    const auto arguments = Json::parse(text_at(called, {"choices", "0", "message", "tool_calls", "0", "function", "arguments"}));
    REQUIRE(arguments);
    CHECK(*arguments == Json::object());
  }
}

TEST_CASE("system and developer messages are read by one rule on all APIs", "[server]") {
  if (lacks_server()) return;
  struct Case {
    std::string messages, plain, front, turns;  // as the three templates show them
  };
  const std::string end = "\n[assistant]";
  const std::vector<Case> cases = {
      {R"([{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, {"role": "user", "content": "c"}])", "[system]a\n\nb\n[user]c", "[system]a\n\nb\n[user]c", "[user]a\n\nb\n\nc"},
      {R"([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"}])", "[user]a\n[system]b\n[user]c", "[user]a\n\nb\n\nc", "[user]a\n\nb\n\nc"},
      {R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "developer", "content": "c"}])", "[user]a\n[assistant]b\n[system]c",
       "[user]a\n[assistant]b\n[user]c", "[user]a\n[assistant]b\n[user]c"},
  };
  const std::vector<std::pair<std::string, std::string Case::*>> templates = {{kPlainTemplate, &Case::plain}, {kFrontTemplate, &Case::front}, {kTurnsTemplate, &Case::turns}};
  for (const auto& [source, shown] : templates) {
    const TemplateServer server(source);
    for (const Case& each : cases) {
      INFO(each.messages);
      const std::string prompt = each.*shown + end;
      CHECK(prompt_of(*server, each.messages) == prompt);
      const std::int64_t tokens = tokens_of(*server, prompt);
      CHECK(number_at(answered(*server, "/v1/messages/count_tokens", R"({"messages": )" + each.messages + "}"), {"input_tokens"}) == tokens);
      CHECK(number_at(answered(*server, "/v1/responses", R"({"max_output_tokens": 1, "input": )" + each.messages + "}"), {"usage", "input_tokens"}) == tokens);
      CHECK(number_at(answered(*server, "/v1/chat/completions", R"({"max_tokens": 1, "messages": )" + each.messages + "}"), {"usage", "prompt_tokens"}) == tokens);
    }
  }
}

TEST_CASE("messages of calls: \"\" stays \"\", no calls are none, arguments are an object or a 400 that names the call", "[server]") {
  if (lacks_server()) return;
  const auto chat = [](const std::string& content, const std::string& calls) {
    return R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", )" + content + R"("tool_calls": )" + calls + R"(}, {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "15 "}, {"type": "text", "text": "C"}]}]})";
  };
  const auto call = [](const std::string& arguments) { return R"([{"id": "c1", "type": "function", "function": {"name": "f", "arguments": )" + arguments + "}}]"; };
  // As Qwen3's of 2025: it cuts the content, and lists the arguments.
  const TemplateServer server("{% for m in messages %}{%- set s = m.content[:15] -%}[{{ m.role }}]{{ s }}{% if m.content is string %}.{% endif %}{% if m.tool_calls is defined and m.tool_calls|length != 1 %}"
                              "{{ raise_exception('only one call') }}{% endif %}{% for c in m.tool_calls %}{% for k, v in c.function.arguments|items %}{{ k }}={{ v }};{% endfor %}{% endfor %}{% endfor %}" + kNames);
  const auto prompt = [&](const std::string& body) { return text_at(answered(*server, "/apply-template", body), {"prompt"}); };
  for (const char* content : {R"("content": "", )", R"("content": null, )", ""}) {
    INFO(content);
    CHECK(prompt(chat(content, call(R"("{\"city\": \"Paris\"}")"))) == "[user]q.[assistant].city=Paris;[tool]15 C.");
    CHECK(prompt(chat(content, call(R"("")"))) == "[user]q.[assistant].[tool]15 C.");
    CHECK(prompt(chat(content, call("null"))) == "[user]q.[assistant].[tool]15 C.");
  }
  CHECK(prompt(R"({"messages": [{"role": "assistant", "content": "A", "tool_calls": []}, {"role": "assistant", "content": "B", "tool_calls": null}]})") == "[assistant]A.[assistant]B.");
  for (const char* broken : {R"("{\"a\": \"x")", R"("[1]")", "5"}) {
    for (const char* path : {"/v1/chat/completions", "/apply-template"}) {
      const Response response = server->post(path, chat(R"("content": "", )", call(broken)));
      INFO(response.body);
      CHECK(response.status == 400);
      CHECK(text_at(response.json(), {"error", "param"}) == "messages[1].tool_calls[0].function.arguments");
    }
  }
  // DeepSeek-R1's writes calls beside null alone, and their arguments as text.
  const TemplateServer null_server("{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}"
                                   "{% elif m.role == 'tool' %}<{{ m.content }}>{% else %}{{ m.content }}{% endif %}{% endfor %}" + kNames);
  for (const char* content : {R"("content": "", )", R"("content": null, )"}) {
    CHECK(text_at(answered(*null_server, "/apply-template", chat(content, call(R"("{\"a\": 1}")"))), {"prompt"}) == "qf{\"a\": 1}<15 C>");
  }
}

TEST_CASE("a tool whose schema cannot be held whole takes nothing from the others, and is told", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kToolsTemplate);
  const auto ask = [&](const char* choice) {
    return server->post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 60, "temperature": 0, "parallel_tool_calls": false, "tool_choice": )" +
                                                    std::string(choice) + R"(, "tools": [
      {"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}}},
      {"type": "function", "function": {"name": "list", "parameters": {"type": "object", "properties": {"l": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}}}}}}]})");
  };
  for (const char* choice : {R"("auto")", R"("required")", R"({"type": "function", "function": {"name": "count"}})"}) {
    INFO(choice);
    for (int again = 0; again < 2; ++again) {  // from the store of grammars, too
      const Response response = ask(choice);
      INFO(response.body);
      REQUIRE(response.status == 200);
      const std::string warning = response.header("x-tessera-warning");
      INFO(warning);
      const bool is_named = std::string_view(choice).find("count") != std::string_view::npos;
      CHECK((warning.find("'list'") != std::string::npos) != is_named);  // a tool that is not on offer is nobody's concern
      if (!is_named) CHECK(warning.find("uniqueItems") != std::string::npos);
    }
  }
  const Json called = ask(R"({"type": "function", "function": {"name": "count"}})").json();
  const auto arguments = Json::parse(text_at(called, {"choices", "0", "message", "tool_calls", "0", "function", "arguments"}));
  REQUIRE(arguments.has_value());
  CHECK((*arguments->find("x") == Json(std::int64_t{1}) || *arguments->find("x") == Json(std::int64_t{2})));
}

}  // namespace test_server_agents
