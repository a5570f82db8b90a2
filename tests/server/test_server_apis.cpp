// OpenAI's and Anthropic's APIs as their clients see them: shapes, the order of events, errors. tests/server/clients.py does
// the same at length with the clients themselves.
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>

#include "http_client.hpp"

namespace test_server_apis {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

// One for all test cases that need no options of their own.
const RunningServer& api_server() {
  static const RunningServer server({"--no-log"});
  return server;
}

std::vector<ServerEvent> api_stream(const RunningServer& server, const std::string& path, const std::string& body) {
  Connection connection(server.port());
  connection.send_request("POST", path, {}, body);
  const Response head = connection.receive_head();
  REQUIRE(head.status == 200);
  CHECK(head.header("content-type").starts_with("text/event-stream"));
  auto events = connection.all_events();
  CHECK(connection.is_whole());
  return events;
}

Json api_answer(const std::string& path, const std::string& body) {
  const Response response = api_server().post(path, body);
  INFO(path << ": " << response.body);
  REQUIRE(response.status == 200);
  CHECK(response.header("content-type").starts_with("application/json"));
  return response.json();
}

// "param" of OpenAI's error of this status.
std::string api_refused(const std::string& path, const std::string& body, int status) {
  const Response response = api_server().post(path, body);
  INFO(path << " " << body << ": " << response.body);
  CHECK(response.status == status);
  CHECK(!text_at(response.json(), {"error", "message"}).empty());
  return text_at(response.json(), {"error", "param"});
}

// Of a list of events, neighbours of one type once.
std::vector<std::string> api_types(const std::vector<ServerEvent>& events) {
  std::vector<std::string> types;
  for (const ServerEvent& event : events) {
    const std::string type = text_at(event.json(), {"type"});
    CHECK(type == event.event);
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  return types;
}

std::string api_joined(const std::vector<ServerEvent>& events, const std::vector<std::string>& path) {
  std::string text;
  for (const ServerEvent& event : events) {
    if (event.data == "[DONE]") continue;
    const Json value = at(event.json(), path);
    if (value.string() != nullptr) text += *value.string();
  }
  return text;
}

const std::string kApiSchema = R"({"type": "object", "additionalProperties": false, "required": ["city"], "properties": {"city": {"enum": ["Paris", "Oslo"]}}})";
const std::string kApiMessages = R"("messages": [{"role": "user", "content": "Once upon a time"}], "temperature": 0)";

}  // namespace

TEST_CASE("chat completions: a stream's deltas are the whole answer, usage and [DONE] come last", "[server]") {
  if (lacks_server()) return;
  const std::string path = "/v1/chat/completions", body = "{" + kApiMessages + R"(, "max_tokens": 12)";
  const Json whole = api_answer(path, body + "}");
  CHECK(text_at(whole, {"object"}) == "chat.completion");
  CHECK(text_at(whole, {"choices", "0", "message", "role"}) == "assistant");
  CHECK(text_at(whole, {"choices", "0", "finish_reason"}) == "length");
  CHECK(number_at(whole, {"usage", "completion_tokens"}) == 12);
  CHECK(number_at(whole, {"usage", "total_tokens"}) == 12 + number_at(whole, {"usage", "prompt_tokens"}));
  const auto events = api_stream(api_server(), path, body + R"(, "stream": true, "stream_options": {"include_usage": true}})");
  REQUIRE(events.size() >= 4);
  CHECK(text_at(events.front().json(), {"choices", "0", "delta", "role"}) == "assistant");
  CHECK(events.back().data == "[DONE]");
  const Json last = events[events.size() - 2].json();
  CHECK(at(last, {"choices"}) == Json::array());
  CHECK(at(last, {"usage"}) == at(whole, {"usage"}));
  CHECK(text_at(events[events.size() - 3].json(), {"choices", "0", "finish_reason"}) == "length");
  CHECK(api_joined(events, {"choices", "0", "delta", "content"}) == text_at(whole, {"choices", "0", "message", "content"}));
}

TEST_CASE("chat completions: choices, log-probabilities, a required call", "[server]") {
  if (lacks_server()) return;
  const Json two = api_answer("/v1/chat/completions", "{" + kApiMessages + R"(, "max_tokens": 4, "n": 2, "logprobs": true, "top_logprobs": 2})");
  for (const char* choice : {"0", "1"}) {
    CHECK(text_at(two, {"choices", choice, "index"}) == choice);
    const Json content = at(two, {"choices", choice, "logprobs", "content"});
    REQUIRE(content.elements() != nullptr);
    CHECK(content.elements()->size() == 4);
    for (const Json& token : *content.elements()) {
      CHECK(at(token, {"token"}).string() != nullptr);
      CHECK(at(token, {"logprob"}) == at(token, {"top_logprobs", "0", "logprob"}));  // greedy
      CHECK(at(token, {"top_logprobs"}).elements()->size() == 2);
    }
  }
  const std::string tool = R"({"type": "function", "function": {"name": "weather", "parameters": )" + kApiSchema + "}}";
  const Json called = api_answer("/v1/chat/completions", "{" + kApiMessages + R"(, "max_tokens": 100, "tool_choice": "required", "tools": [)" + tool + "]}");
  CHECK(text_at(called, {"choices", "0", "message", "tool_calls", "0", "function", "name"}) == "weather");
  const auto arguments = Json::parse(text_at(called, {"choices", "0", "message", "tool_calls", "0", "function", "arguments"}));
  REQUIRE(arguments);
  CHECK((text_at(*arguments, {"city"}) == "Paris" || text_at(*arguments, {"city"}) == "Oslo"));
}

TEST_CASE("a schema's properties come in its order, and no others", "[server]") {
  if (lacks_server()) return;
  const std::string schema = R"({"type": "object", "required": ["a", "b"], "properties": {"b": {"type": "boolean"}, "a": {"enum": [1, 2]}}})";
  const std::string format = R"("response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": )" + schema + "}}";
  for (const char* seed : {"1", "2", "3"}) {
    const Json answer = api_answer("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": 2, "max_tokens": 60, "seed": )" +
                                                               std::string(seed) + ", " + format + "}");
    const auto object = Json::parse(text_at(answer, {"choices", "0", "message", "content"}));
    REQUIRE(object);
    REQUIRE(object->members() != nullptr);
    REQUIRE(object->members()->size() == 2);
    CHECK(object->members()->at(0).first == "b");
    CHECK(object->members()->at(1).first == "a");
  }
  CHECK(api_refused("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "response_format": {"type": "json_schema", "json_schema": {"schema": 3}}})",
                    400) == "response_format.json_schema.schema");
}

TEST_CASE("with tools and a form an answer is a call, or a text of that form", "[server]") {
  if (lacks_server()) return;
  const std::string tool = R"({"type": "function", "function": {"name": "weather", "parameters": )" + kApiSchema + "}}";
  const std::string form = R"({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "required": ["n"], "properties": {"n": {"enum": ["one", "two"]}}}}})";
  const auto answer_of = [&](const std::string& choice, int seed) {
    return api_answer("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": 2, "max_tokens": 100, "seed": )" + std::to_string(seed) +
                                                  R"(, "parallel_tool_calls": false, "tool_choice": ")" + choice + R"(", "response_format": )" + form + R"(, "tools": [)" + tool + "]}");
  };
  std::size_t calls = 0, texts = 0;
  for (int seed = 0; seed < 24 && (calls == 0 || texts == 0); ++seed) {
    const Json answer = answer_of("auto", seed);
    const std::string reason = text_at(answer, {"choices", "0", "finish_reason"});
    if (reason == "tool_calls") {
      ++calls;
      CHECK(text_at(answer, {"choices", "0", "message", "tool_calls", "0", "function", "name"}) == "weather");
      CHECK(Json::parse(text_at(answer, {"choices", "0", "message", "tool_calls", "0", "function", "arguments"})));
    } else {
      ++texts;
      CHECK(reason == "stop");
      const auto object = Json::parse(text_at(answer, {"choices", "0", "message", "content"}));
      REQUIRE(object);
      CHECK((text_at(*object, {"n"}) == "one" || text_at(*object, {"n"}) == "two"));
    }
  }
  CHECK(calls > 0);
  CHECK(texts > 0);
  CHECK(text_at(answer_of("required", 1), {"choices", "0", "finish_reason"}) == "tool_calls");
  CHECK(text_at(answer_of("none", 1), {"choices", "0", "finish_reason"}) == "stop");
}

TEST_CASE("chat completions: what is wrong is named", "[server]") {
  if (lacks_server()) return;
  const std::string path = "/v1/chat/completions";
  CHECK(api_refused(path, R"({"messages": []})", 400) == "messages");
  CHECK(api_refused(path, R"({"messages": [{"role": "user", "content": 3}]})", 400) == "messages[0].content");
  CHECK(api_refused(path, R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", 400) == "messages[0].content[0].type");
  CHECK(api_refused(path, R"({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]})", 400) == "messages[0].function_call");
  CHECK(api_refused(path, "{" + kApiMessages + R"(, "n": 0})", 400) == "n");
  for (const auto& [format, param] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"type": "sound"})", "response_format.type"},
           {R"({"type": "json_object", "schema": 123})", "response_format.schema"},
           {R"({"type": "json_object", "schema": {"type": "hiccup"}})", "response_format"},
           {R"({"type": "json_schema", "json_schema": {"schema": {}, "x_schema": 1}})", "response_format.json_schema.x_schema"}}) {
    CHECK(api_refused(path, "{" + kApiMessages + R"(, "response_format": )" + format + "}", 400) == param);
  }
  const std::string complete = "/v1/completions", number = R"("guided_regex": "[0-9]")", word = R"("guided_json": {"type": "string"})";
  CHECK(api_refused(path, "{" + kApiMessages + R"(, "response_format": {"type": "json_object"}, )" + number + "}", 400) == "guided_regex");
  CHECK(api_refused(path, "{" + kApiMessages + ", " + number + ", " + word + "}", 400) == "guided_json");
  CHECK(api_refused(complete, R"({"prompt": "a", )" + number + ", " + word + "}", 400) == "guided_json");
  CHECK(api_refused(complete, R"({"prompt": "a", "guided_json": {"type": "hiccup"}})", 400) == "guided_json");
  CHECK(api_refused(path, "{" + kApiMessages + R"(, "guided_json": {"type": "hiccup"}})", 400) == "guided_json");
  CHECK(api_refused(path, "{" + kApiMessages + R"(, "thinking_token_budget": -1})", 400) == "thinking_token_budget");
  CHECK(api_refused(path, "{" + kApiMessages + R"(, "tool_choice": "required"})", 400) == "tool_choice");
  CHECK(api_refused(path, "{", 400) == "null");
  const Response plain = api_server().request("POST", path, {{"Content-Type", "text/plain"}}, "{}");
  CHECK(plain.status == 415);
  const Response get = api_server().request("GET", path);
  CHECK(get.status == 405);
  CHECK(get.header("allow") == "POST, OPTIONS");
  CHECK(api_server().request("GET", "/v1/nothing").status == 404);
}

TEST_CASE("responses: the events in their order, numbered; items that are the whole answer's", "[server]") {
  if (lacks_server()) return;
  const std::string path = "/v1/responses", body = R"({"input": "Once upon a time", "temperature": 0, "max_output_tokens": 12)";
  const Json whole = api_answer(path, body + "}");
  CHECK(text_at(whole, {"status"}) == "incomplete");
  CHECK(text_at(whole, {"incomplete_details", "reason"}) == "max_output_tokens");
  CHECK(text_at(whole, {"store"}) == "false");
  CHECK(number_at(whole, {"usage", "output_tokens"}) == 12);
  CHECK(number_at(whole, {"usage", "total_tokens"}) == 12 + number_at(whole, {"usage", "input_tokens"}));
  CHECK(number_at(whole, {"usage", "input_tokens_details", "cached_tokens"}) >= 0);
  CHECK(number_at(whole, {"usage", "output_tokens_details", "reasoning_tokens"}) == 0);
  const auto events = api_stream(api_server(), path, body + R"(, "stream": true})");
  CHECK(api_types(events) == std::vector<std::string>{"response.created", "response.in_progress", "response.output_item.added",
                                                      "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                                                      "response.content_part.done", "response.output_item.done", "response.incomplete"});
  for (std::size_t i = 0; i < events.size(); ++i) CHECK(number_at(events[i].json(), {"sequence_number"}) == static_cast<std::int64_t>(i));
  const std::string text = text_at(whole, {"output", "0", "content", "0", "text"});
  CHECK(api_joined(events, {"delta"}) == text);
  CHECK(text_at(events.back().json(), {"response", "output", "0", "content", "0", "text"}) == text);
  CHECK(at(events.back().json(), {"response", "usage"}) == at(whole, {"usage"}));
}

TEST_CASE("responses: a required call, streamed; its result is read; what needs a store is refused", "[server]") {
  if (lacks_server()) return;
  const std::string tools = R"("temperature": 0, "max_output_tokens": 100, "tools": [{"type": "function", "name": "weather", "parameters": )" + kApiSchema + "}]";
  const auto events = api_stream(api_server(), "/v1/responses", R"({"input": "Hello", "tool_choice": "required", "stream": true, )" + tools + "}");
  std::string pieces, done, call_id;
  std::set<std::string> types;
  for (const ServerEvent& event : events) {
    const Json json = event.json();
    types.insert(event.event);
    if (done.empty() && event.event == "response.function_call_arguments.delta") pieces += text_at(json, {"delta"});
    if (done.empty() && event.event == "response.function_call_arguments.done") done = text_at(json, {"arguments"});
    if (call_id.empty() && event.event == "response.output_item.added") call_id = text_at(json, {"item", "call_id"});
  }
  CHECK(types.count("response.output_text.delta") == 0);
  CHECK(pieces == done);
  CHECK(Json::parse(done));
  CHECK(call_id.starts_with("call_"));
  const std::string call = R"({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Oslo\"}"})";
  const std::string result = R"({"type": "function_call_output", "call_id": "c1", "output": "21 degrees"})";
  const Json answer = api_answer("/v1/responses", R"({"input": [{"role": "user", "content": "Hello"}, )" + call + ", " + result + R"(], "max_output_tokens": 4})");
  CHECK(text_at(answer, {"object"}) == "response");
  CHECK(api_refused("/v1/responses", R"({"input": [)" + result + "]}", 400) == "input[0].call_id");
  CHECK(api_refused("/v1/responses", R"({"input": "a", "previous_response_id": "resp_1"})", 400) == "previous_response_id");
  CHECK(api_refused("/v1/responses", R"({"input": [{"type": "item_reference", "id": "x"}]})", 400) == "input[0].type");
  CHECK(api_refused("/v1/responses", R"({"input": "a", "tool_choice": "required", "tools": [{"type": "web_search"}]})", 400) == "tool_choice");
  CHECK(api_refused("/v1/responses", R"({"max_output_tokens": 4})", 400) == "input");
}

TEST_CASE("messages: the events in their order; the text and the counts are the whole answer's", "[server]") {
  if (lacks_server()) return;
  const std::string body = "{" + kApiMessages + R"(, "max_tokens": 12)";
  const Json whole = api_answer("/v1/messages", body + "}");
  CHECK(text_at(whole, {"type"}) == "message");
  CHECK(text_at(whole, {"stop_reason"}) == "max_tokens");
  CHECK(at(whole, {"stop_sequence"}).is_null());
  CHECK(number_at(whole, {"usage", "output_tokens"}) == 12);
  const auto events = api_stream(api_server(), "/v1/messages", body + R"(, "stream": true})");
  CHECK(api_types(events) == std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop",
                                                      "message_delta", "message_stop"});
  CHECK(api_joined(events, {"delta", "text"}) == text_at(whole, {"content", "0", "text"}));
  const Json counted = api_answer("/v1/messages/count_tokens", R"({"messages": [{"role": "user", "content": "Once upon a time"}]})");
  CHECK(number_at(counted, {"input_tokens"}) == number_at(events.front().json(), {"message", "usage", "input_tokens"}));
  CHECK(number_at(counted, {"input_tokens"}) == number_at(whole, {"usage", "input_tokens"}) + number_at(whole, {"usage", "cache_read_input_tokens"}));
}

TEST_CASE("messages: stop sequences, calls and their results, a begun answer", "[server]") {
  if (lacks_server()) return;
  const std::string text = text_at(api_answer("/v1/messages", "{" + kApiMessages + R"(, "max_tokens": 12})"), {"content", "0", "text"});
  const std::size_t space = text.find(' ', text.size() / 2);
  REQUIRE(space != std::string::npos);
  const std::string stop = text.substr(space, 4);
  const Json stopped = api_answer("/v1/messages", "{" + kApiMessages + R"(, "max_tokens": 12, "stop_sequences": ["@@", )" + Json(stop).dump() + "]}");
  CHECK(text_at(stopped, {"stop_reason"}) == "stop_sequence");
  CHECK(text_at(stopped, {"stop_sequence"}) == stop);
  CHECK(text_at(stopped, {"content", "0", "text"}) == text.substr(0, text.find(stop)));

  const std::string tools = R"("max_tokens": 100, "tools": [{"name": "weather", "input_schema": )" + kApiSchema + "}]";
  const auto events = api_stream(api_server(), "/v1/messages", "{" + kApiMessages + R"(, "stream": true, "tool_choice": {"type": "tool", "name": "weather"}, )" + tools + "}");
  std::string input, id;
  for (const ServerEvent& event : events) {
    const Json json = event.json();
    if (number_at(json, {"index"}) != 0) continue;
    if (event.event == "content_block_start") {
      CHECK(text_at(json, {"content_block", "type"}) == "tool_use");
      CHECK(text_at(json, {"content_block", "name"}) == "weather");
      CHECK(at(json, {"content_block", "input"}) == Json::object());
      id = text_at(json, {"content_block", "id"});
    }
    if (event.event == "content_block_delta") input += text_at(json, {"delta", "partial_json"});
  }
  const auto arguments = Json::parse(input);
  REQUIRE(arguments);
  CHECK((text_at(*arguments, {"city"}) == "Paris" || text_at(*arguments, {"city"}) == "Oslo"));
  const std::string use = R"({"role": "assistant", "content": [{"type": "tool_use", "id": ")" + id + R"(", "name": "weather", "input": )" + input + "}]}";
  const std::string result = R"({"role": "user", "content": [{"type": "tool_result", "tool_use_id": ")" + id + R"(", "content": "rain"}]})";
  const std::string hello = R"({"role": "user", "content": "Hello"})";
  CHECK(text_at(api_answer("/v1/messages", R"({"messages": [)" + hello + ", " + use + ", " + result + R"(], "max_tokens": 4})"), {"type"}) == "message");
  CHECK(api_server().post("/v1/messages", R"({"messages": [)" + hello + ", " + result + R"(], "max_tokens": 4})").status == 400);

  // Without a template the texts stand one after the other, so a begun answer reads as one text does.
  const Json begun = api_answer("/v1/messages", R"({"messages": [{"role": "user", "content": "Once upon"}, {"role": "assistant", "content": " a time"}],
                                                    "max_tokens": 12, "temperature": 0})");
  CHECK(begun.find("content") != nullptr);
  CHECK(number_at(begun, {"usage", "output_tokens"}) == 12);
}

TEST_CASE("messages: errors in Anthropic's shape", "[server]") {
  if (lacks_server()) return;
  const auto check = [](const std::string& body, int status, const std::string& type, const std::string& part) {
    const Response response = api_server().post("/v1/messages", body);
    INFO(body << ": " << response.body);
    CHECK(response.status == status);
    CHECK(text_at(response.json(), {"type"}) == "error");
    CHECK(text_at(response.json(), {"error", "type"}) == type);
    CHECK(text_at(response.json(), {"error", "message"}).find(part) != std::string::npos);
  };
  check("{" + kApiMessages + "}", 400, "invalid_request_error", "max_tokens");
  check(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}], "max_tokens": 4})", 400, "invalid_request_error", "messages[0].content[0].type");
  check("{" + kApiMessages + R"(, "max_tokens": 4, "thinking": {"type": "enabled", "display": "loud"}})", 400, "invalid_request_error", "thinking.display");
  check("{" + kApiMessages + R"(, "max_tokens": 4, "context_management": {"edits": [{"type": "compact_20260112"}]}})", 400, "invalid_request_error", "context_management");
  const Response get = api_server().request("GET", "/v1/messages");
  CHECK(get.status == 405);
  CHECK(text_at(get.json(), {"type"}) == "error");
}

TEST_CASE("a client that leaves in the middle ends its request", "[server]") {
  if (lacks_server()) return;
  const auto status = [] { return api_server().request("GET", "/status.json").json(); };
  const std::int64_t before = number_at(status(), {"cancelled_total"});
  Connection connection(api_server().port());
  connection.send_request("POST", "/v1/chat/completions", {}, "{" + kApiMessages + R"(, "n": 8, "ignore_eos": true, "stream": true})");
  REQUIRE(connection.receive_head().status == 200);
  for (int i = 0; i < 10; ++i) REQUIRE(connection.next_event());
  connection.drop();
  bool ended = false;
  for (int i = 0; i < 1000 && !ended; ++i) {
    const Json now = status();
    ended = number_at(now, {"running"}) == 0 && number_at(now, {"cancelled_total"}) > before;
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(ended);
}

TEST_CASE("keys are asked for in both APIs; reasoning is told apart in each", "[server]") {
  if (lacks_server()) return;
  const std::string path = (std::filesystem::temp_directory_path() / ("tessera-template-" + std::to_string(getpid()))).string();
  // The answer begins within the reasoning, as the templates of models that always think have it.
  std::ofstream(path) << "{% for message in messages %}{{ message.content }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}";
  const RunningServer server({"--no-log", "--api-key", "secret", "--template", path});
  std::filesystem::remove(path);
  const std::string chat = "{" + kApiMessages + R"(, "max_tokens": 8})";
  const Response none = server.post("/v1/chat/completions", chat);
  CHECK(none.status == 401);
  CHECK(text_at(none.json(), {"error", "code"}) == "invalid_api_key");
  const Response wrong = server.post("/v1/messages", chat, {{"x-api-key", "secre"}});
  CHECK(wrong.status == 401);
  CHECK(text_at(wrong.json(), {"error", "type"}) == "authentication_error");
  CHECK(server.request("GET", "/health").status == 200);

  const Response thought = server.post("/v1/chat/completions", chat, {{"Authorization", "Bearer secret"}});
  REQUIRE(thought.status == 200);
  const std::string reasoning = text_at(thought.json(), {"choices", "0", "message", "reasoning_content"});
  CHECK(!reasoning.empty());
  CHECK(text_at(thought.json(), {"choices", "0", "message", "content"}).empty());
  CHECK(number_at(thought.json(), {"usage", "completion_tokens_details", "reasoning_tokens"}) > 0);

  Connection connection(server.port());
  connection.send_request("POST", "/v1/messages", {{"x-api-key", "secret"}, {"anthropic-version", "2023-06-01"}}, "{" + kApiMessages + R"(, "max_tokens": 8, "stream": true})");
  REQUIRE(connection.receive_head().status == 200);
  const auto events = connection.all_events();
  CHECK(api_joined(events, {"delta", "thinking"}) == reasoning);
  bool is_signed = false;
  for (const ServerEvent& event : events) is_signed = is_signed || text_at(event.json(), {"delta", "type"}) == "signature_delta";
  CHECK(is_signed);

  // A budget leaves room for the answer, and an effort a share of it.
  const auto bounded = [&](const std::string& target, const std::string& more, const std::vector<std::string>& text, const std::vector<std::string>& thinking) {
    const Response response = server.post(target, "{" + kApiMessages + R"(, "max_tokens": 40, )" + more + "}", {{"Authorization", "Bearer secret"}});
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(!text_at(response.json(), text).empty());
    return text_at(response.json(), thinking);
  };
  const std::vector<std::string> content{"choices", "0", "message", "content"}, thinking{"choices", "0", "message", "reasoning_content"};
  const std::string four = bounded("/v1/chat/completions", R"("thinking_token_budget": 4)", content, thinking);
  CHECK(reasoning.starts_with(four));
  CHECK(four.size() < reasoning.size());
  CHECK(bounded("/v1/chat/completions", R"("thinking_token_budget": 0)", content, thinking) == "null");  // there is none
  CHECK(bounded("/v1/chat/completions", R"("reasoning_effort": "none")", content, thinking) == "null");  // there is none
  CHECK(bounded("/v1/chat/completions", R"("reasoning_effort": "minimal")", content, thinking) == four);  // a tenth of 40
  CHECK(bounded("/v1/messages", R"("thinking": {"type": "enabled", "budget_tokens": 4})", {"content", "1", "text"}, {"content", "0", "thinking"}) == four);

  // A stop string in the reasoning ends nothing, unless it is asked for; log-probabilities are of the answer's tokens alone.
  const std::string stop = Json(reasoning.substr(0, 4)).dump();
  const auto stopped = [&](const std::string& more) {
    const Response response = server.post("/v1/chat/completions", "{" + kApiMessages + R"(, "max_tokens": 40, "thinking_token_budget": 8, "stop": )" + stop + more + "}", {{"Authorization", "Bearer secret"}});
    REQUIRE(response.status == 200);
    return response.json();
  };
  CHECK(text_at(stopped(""), thinking).starts_with(reasoning.substr(0, 4)));
  const Json at_once = stopped(R"(, "stop_in_reasoning": true)");
  CHECK(text_at(at_once, {"choices", "0", "finish_reason"}) == "stop");
  CHECK(text_at(at_once, thinking) == "null");
  const std::string told = "{" + kApiMessages + R"(, "max_tokens": 20, "thinking_token_budget": 4, "logprobs": true)";
  const auto spelled = [](const Json& tokens) {
    std::string text;
    for (const Json& token : *tokens.elements()) text += text_at(token, {"token"});
    return text.substr(std::min(text.find_first_not_of(" \n"), text.size()));
  };
  const Response with = server.post("/v1/chat/completions", told + "}", {{"Authorization", "Bearer secret"}});
  REQUIRE(with.status == 200);
  CHECK(!text_at(with.json(), content).empty());
  CHECK(spelled(at(with.json(), {"choices", "0", "logprobs", "content"})) == text_at(with.json(), content));
  Connection streaming(server.port());
  streaming.send_request("POST", "/v1/chat/completions", {{"Authorization", "Bearer secret"}}, told + R"(, "stream": true})");
  REQUIRE(streaming.receive_head().status == 200);
  Json::Array streamed;
  for (const ServerEvent& event : streaming.all_events()) {
    if (event.data == "[DONE]") break;
    const Json more = at(event.json(), {"choices", "0", "logprobs", "content"});
    if (more.elements() != nullptr) streamed.insert(streamed.end(), more.elements()->begin(), more.elements()->end());
  }
  CHECK(Json(streamed) == at(with.json(), {"choices", "0", "logprobs", "content"}));

  const Response items = server.post("/v1/responses", R"({"input": "Once upon a time", "temperature": 0, "max_output_tokens": 8})", {{"Authorization", "Bearer secret"}});
  REQUIRE(items.status == 200);
  CHECK(text_at(items.json(), {"output", "0", "type"}) == "reasoning");
  CHECK(text_at(items.json(), {"output", "0", "content", "0", "text"}) == reasoning);
}

TEST_CASE("a model's name may have what paths write otherwise", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "--model-id", "org/my model"});
  for (const char* path : {"/v1/models/org%2Fmy%20model", "/v1/models/org/my%20model"}) CHECK(text_at(server.request("GET", path).json(), {"id"}) == "org/my model");
  for (const char* path : {"/v1/models/org%2", "/v1/models/%", "/v1/models/%FF", "/v1/models/%-1%00"}) CHECK(server.request("GET", path).status == 404);
}

TEST_CASE("/openapi.json names what there is", "[server]") {
  if (lacks_server()) return;
  const Response response = api_server().request("GET", "/openapi.json");
  REQUIRE(response.status == 200);
  const Json document = response.json();
  CHECK(text_at(document, {"openapi"}) == "3.1.0");
  const Json paths = at(document, {"paths"});
  REQUIRE(paths.members() != nullptr);
  for (const auto& [path, methods] : *paths.members()) {
    std::string real = path;
    if (const std::size_t name = real.find("{model}"); name != std::string::npos) real.replace(name, 7, "tessera-stories");
    for (const char* method : {"get", "post"}) {
      const Response answer = api_server().request(Connection::lower(method) == "get" ? "GET" : "POST", real, {{"Content-Type", "application/json"}}, {});
      INFO(method << " " << real << ": " << answer.status);
      const bool is_an_id = real.ends_with("{id}");  // there is nothing of that id
      if (methods.find(method) != nullptr) CHECK((answer.status != 405 && (answer.status != 404) == !is_an_id));
      else CHECK(answer.status == 405);
    }
  }
}

}  // namespace test_server_apis
