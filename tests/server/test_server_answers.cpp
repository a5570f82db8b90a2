// Promises about the text of answers that hold on every API: what a grammar forces, control tokens, broken calls, bans.
#include <fstream>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_answers {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

// A server whose model has this template.
class TemplateServer {
 public:
  explicit TemplateServer(const std::string& source, std::vector<std::string> more = {}) {
    const std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera-answers-{}", getpid())).string();
    std::ofstream(path) << source;
    more.insert(more.begin(), {"--no-log", "--template", path});
    server_.emplace(std::move(more));
    std::filesystem::remove(path);
  }
  const RunningServer* operator->() const { return &*server_; }

 private:
  std::optional<RunningServer> server_;
};

const std::string kTemplate = "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
                              "[assistant]{# <tool_call>{\"name\", \"arguments\"}</tool_call> #}";
const std::string kThinkTemplate = kTemplate + "<think>\n";

// The events of a stream or the lines of Ollama's, or the one object of a whole answer.
std::vector<Json> objects_of(const Response& response) {
  INFO(response.body);
  std::vector<Json> objects;
  const std::string type = response.header("content-type");
  if (type.starts_with("application/json")) return {response.json()};
  std::istringstream lines(response.body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("data: ")) line.erase(0, 6);
    else if (type.starts_with("text/event-stream")) continue;
    if (line.empty() || line == "[DONE]") continue;
    auto object = Json::parse(line);
    REQUIRE(object);
    objects.push_back(*std::move(object));
  }
  return objects;
}

// All texts (or, as "true", flags) that stand under a key, wherever, one behind the other.
void collect(const Json& json, const std::string& key, std::string& out) {
  if (const auto* members = json.members()) {
    for (const auto& [name, value] : *members) {
      if (name == key && value.string() != nullptr) out += *value.string();
      else if (name == key && value.boolean() != nullptr) out += *value.boolean() ? "true" : "false";
      else collect(value, key, out);
    }
  } else if (const auto* elements = json.elements()) {
    for (const Json& element : *elements) collect(element, key, out);
  }
}

struct AnswerApi {
  const char* name;
  const char* path;
  const char* question;                // fields
  const char* most;                    // the name of the field that says how long an answer may be
  std::vector<const char*> text, streamed_text;  // keys of an answer's text
};

const std::vector<AnswerApi>& answer_apis() {
  static const std::vector<AnswerApi> all{
      {"chat", "/v1/chat/completions", R"("messages": [{"role": "user", "content": "Hi"}])", "max_tokens", {"content"}, {"content"}},
      {"responses", "/v1/responses", R"("input": "Hi")", "max_output_tokens", {"text"}, {"delta"}},
      {"messages", "/v1/messages", R"("messages": [{"role": "user", "content": "Hi"}])", "max_tokens", {"text"}, {"text"}},
      {"ollama", "/api/chat", R"("messages": [{"role": "user", "content": "Hi"}])", "num_predict", {"content"}, {"content"}},
  };
  return all;
}

std::string body_of(const AnswerApi& api, int most, bool streams, const std::string& more) {
  return fmt::format(R"({{{}, "{}": {}, "stream": {}, {}}})", api.question, api.most, most, streams, more);
}

// The text of an answer, by its deltas where it streams.
std::string text_of(const AnswerApi& api, const Response& response, bool streams) {
  std::string text;
  for (const Json& object : objects_of(response)) {
    // An event that says the whole text again is none of its pieces.
    const Json type = at(object, {"type"});
    const bool is_delta = type.string() == nullptr || type.string()->ends_with("_text.delta") || *type.string() == "content_block_delta";
    if (streams && !is_delta) continue;
    const Json output = at(object, {"output"});  // of Responses, which says the request's own texts too
    for (const char* key : streams ? api.streamed_text : api.text) collect(!streams && output.elements() != nullptr ? output : object, key, text);
  }
  return text;
}

}  // namespace

TEST_CASE("white space behind reasoning is bounded where a grammar holds the answer", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kThinkTemplate);
  // The model likes nothing better than these, so that it writes as many as it may.
  std::string biases;
  for (const char* space : {"\n", " ", "\t", "\u205F", "\u00A0", "\n\n"}) {
    const Json tokens = at(server->post("/tokenize", R"({"prompt": )" + Json(space).dump() + R"(, "add_special": false})").json(), {"tokens"});
    REQUIRE(tokens.elements() != nullptr);
    for (const Json& token : *tokens.elements()) {
      if (token.dump() != "0" && biases.find(fmt::format("\"{}\"", token.dump())) == std::string::npos) biases += fmt::format(R"({}"{}": 60)", biases.empty() ? "" : ", ", token.dump());
    }
  }
  const std::string tool = R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}}}])";
  for (const std::string& form : std::vector<std::string>{
           R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}}})",
           R"("guided_regex": "yes|no")", R"("tool_choice": "required", )" + tool, R"("guided_choice": ["yes", "no"], )" + tool}) {
    for (const char* seed : {"1", "2", "3"}) {
      const Response response = server->post("/v1/chat/completions", fmt::format(R"({{"messages": [{{"role": "user", "content": "Hi"}}], "max_tokens": 160, "thinking_token_budget": 4,
        "temperature": 1.5, "seed": {}, "logit_bias": {{{}}}, {}}})", seed, biases, form));
      INFO(form << " " << response.body);
      REQUIRE(response.status == 200);
      const Json choice = at(response.json(), {"choices", "0"});
      const std::string reason = text_at(choice, {"finish_reason"}), content = text_at(choice, {"message", "content"});
      CHECK((reason == "stop" || reason == "tool_calls"));
      if (reason == "stop") CHECK((content == "yes" || content == "no" || Json::parse(content)));
    }
  }
}

TEST_CASE("a control token that is no marker is not shown as text, whatever made the model write it", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kTemplate);
  // Token 0 is <|endoftext|>. It comes first wherever it may, and does not end the answer.
  const std::string forced = R"("logit_bias": {"0": 100}, "ignore_eos": true, "temperature": 0)";
  for (const AnswerApi& api : answer_apis()) {
    for (const bool streams : {false, true}) {
      INFO(api.name << (streams ? ", a stream" : ""));
      const Response response = server->post(api.path, body_of(api, 6, streams, forced));
      REQUIRE(response.status == 200);
      CHECK(response.body.find("endoftext") == std::string::npos);
      CHECK(text_of(api, response, streams).empty());
      // In front of a text that must come, and behind it: the text alone is shown.
      const Response held = server->post(api.path, body_of(api, 12, streams, forced + R"(, "guided_regex": "yes")"));
      REQUIRE(held.status == 200);
      CHECK(text_of(api, held, streams) == "yes");
    }
  }
}

TEST_CASE("a call that could not be read is told on every API, and one that could is not", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kTemplate);
  for (const bool is_broken : {true, false}) {
    const std::string call = R"(<tool_call>\n\\{\"name\": \"f\", \"arguments\": )" + std::string(is_broken ? R"([1, 2])" : R"(\\{\"a\": 1\\})") + R"(\\}\n</tool_call>)";
    std::string pattern;
    for (const char c : call) pattern += c == '[' ? "\\\\[" : std::string(1, c);
    for (const AnswerApi& api : answer_apis()) {
      for (const bool streams : {false, true}) {
        const Response response = server->post(api.path, body_of(api, 120, streams, R"("guided_regex": ")" + pattern + R"(")"));
        INFO(api.name << (streams ? ", a stream: " : ": ") << response.body);
        REQUIRE(response.status == 200);
        std::string names, told;
        for (const Json& object : objects_of(response)) {
          collect(object, "name", names);
          collect(object, "broken", told);
        }
        CHECK(names.starts_with("f"));
        CHECK(told.starts_with("true") == is_broken);
        CHECK(text_of(api, response, streams).find("tool_call") == std::string::npos);
      }
    }
  }
}

TEST_CASE("a stop string ends each of several answers at the same byte, in a stream or whole, drafted by a grammar or not", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kThinkTemplate);
  // "seed" makes the samples the same from one request to the next; what the reasoning says ends nothing.
  const std::string body = R"("messages": [{"role": "user", "content": "Once upon a time"}], "n": 3, "seed": 5, "temperature": 1.3, "max_tokens": 60, "thinking_token_budget": 8)";
  const auto contents = [&](const std::string& more, bool streams) {
    const Response response = server->post("/v1/chat/completions", fmt::format(R"({{{}, "stream": {}{}}})", body, streams, more));
    INFO(response.body);
    REQUIRE(response.status == 200);
    std::vector<std::string> texts(3);
    for (const Json& object : objects_of(response)) {
      const Json choices = at(object, {"choices"});
      for (const Json& choice : *choices.elements()) {
        const Json text = at(choice, {streams ? "delta" : "message", "content"});
        if (text.string() != nullptr) texts.at(static_cast<std::size_t>(number_at(choice, {"index"}))) += *text.string();
      }
    }
    return texts;
  };
  const auto cut = [](std::vector<std::string> texts, const std::vector<std::string>& stops) {
    for (std::string& text : texts) {
      std::size_t end = std::string::npos, begin = text.size();
      for (const std::string& stop : stops) {
        const std::size_t found = text.find(stop);
        if (found == std::string::npos || found + stop.size() >= end) continue;
        begin = found;
        end = found + stop.size();
      }
      text.resize(begin);
    }
    return texts;
  };
  for (const std::string& form : std::vector<std::string>{"", R"(, "guided_regex": "(The|A) (dog|cat) ran (away|home)[.] The end[.] And [a-z]{8}[.]")"}) {
    const auto plain = contents(form, false);
    CHECK(contents(form, true) == plain);
    for (const std::vector<std::string>& stops : std::vector<std::vector<std::string>>{{" ran"}, {"he en", "a"}, {". ", "dog"}, {"e", "ad"}}) {
      std::string list;
      for (const std::string& stop : stops) list += (list.empty() ? "" : ", ") + Json(stop).dump();
      const std::string more = form + R"(, "stop": [)" + list + "]";
      INFO(more);
      const auto expected = cut(plain, stops);
      CHECK(contents(more, false) == expected);
      CHECK(contents(more, true) == expected);
    }
  }
}

TEST_CASE("when nothing is left to draw, a whole answer is a 400 that names logit_bias, and a stream ends with these words", "[server]") {
  if (lacks_server()) return;
  const TemplateServer server(kTemplate);
  std::string biases;
  for (int token = 0; token < 2048; ++token) biases += fmt::format(R"({}"{}": -100)", biases.empty() ? "" : ", ", token);
  std::vector<AnswerApi> apis = answer_apis();
  apis.push_back({"completions", "/v1/completions", R"("prompt": "Hi")", "max_tokens", {}, {}});
  apis.push_back({"ollama's generate", "/api/generate", R"("prompt": "Hi")", "num_predict", {}, {}});
  for (const AnswerApi& api : apis) {
    for (const char* more : {"", R"(, "temperature": 0)"}) {
      INFO(api.name << more);
      const Response whole = server->post(api.path, body_of(api, 4, false, fmt::format(R"("logit_bias": {{{}}}{})", biases, more)));
      CHECK(whole.status == 400);
      CHECK(whole.body.find("logit_bias bans all") != std::string::npos);
      const Response stream = server->post(api.path, body_of(api, 4, true, fmt::format(R"("logit_bias": {{{}}}{})", biases, more)));
      CHECK(stream.status == 200);  // it has begun
      CHECK(stream.is_whole);
      CHECK(stream.body.find("logit_bias bans all") != std::string::npos);
      if (api.name == std::string_view("responses")) CHECK(text_at(objects_of(stream).back(), {"response", "error", "code"}) == "invalid_prompt");  // of its API's codes
    }
  }
}

}  // namespace test_server_answers
