// Ollama's API as its clients use it: whole answers, lines of a stream, the model's description, and what is refused.
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_ollama {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

// A server whose model has this template.
class TemplateServer {
 public:
  explicit TemplateServer(const std::string& source, std::vector<std::string> more = {}) {
    const std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera-ollama-{}", getpid())).string();
    std::ofstream(path) << source;
    more.insert(more.begin(), {"--no-log", "--template", path});
    server_.emplace(std::move(more));
    std::filesystem::remove(path);
  }
  const RunningServer* operator->() const { return &*server_; }
  const RunningServer& operator*() const { return *server_; }

 private:
  std::optional<RunningServer> server_;
};

const std::string kTemplate = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
const std::string kToolsTemplate = "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}" + kTemplate + "{# <tool_call>{\"name\", \"arguments\"}</tool_call> #}";
const std::string kThinkTemplate = kTemplate + "{% if add_generation_prompt %}{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}";
const std::string kHello = R"("messages": [{"role": "user", "content": "Once upon a time"}])";

// One server for the tests that need nothing special of it.
const RunningServer& server() {
  static const TemplateServer one(kToolsTemplate);
  return *one;
}

Json answered(const RunningServer& at, const std::string& path, const std::string& body) {
  const Response response = at.post(path, body);
  INFO(path << " " << body << ": " << response.body);
  REQUIRE(response.status == 200);
  return response.json();
}
Json answered(const std::string& path, const std::string& body) { return answered(server(), path, body); }

// The error of a request that is refused with this status.
std::string refused(const RunningServer& at, const std::string& path, const std::string& body, int status) {
  const Response response = at.post(path, body);
  INFO(path << " " << body << ": " << response.body);
  CHECK(response.status == status);
  const Json json = response.json();
  REQUIRE(json.members() != nullptr);
  CHECK(json.members()->size() == 1);
  return text_at(json, {"error"});
}
std::string refused(const std::string& path, const std::string& body, int status = 400) { return refused(server(), path, body, status); }

// The lines of a stream, each an object.
std::vector<Json> lines_of(const std::string& body) {
  std::vector<Json> lines;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at);
    REQUIRE(end != std::string::npos);
    auto line = Json::parse(body.substr(at, end - at));
    INFO(body.substr(at, end - at));
    REQUIRE(line);
    lines.push_back(*line);
    at = end + 1;
  }
  REQUIRE(!lines.empty());
  return lines;
}
std::vector<Json> streamed(const RunningServer& at, const std::string& path, const std::string& body) {
  const Response response = at.post(path, body);
  INFO(response.body);
  REQUIRE(response.status == 200);
  CHECK(response.header("content-type") == "application/x-ndjson");
  CHECK(response.is_whole);
  return lines_of(response.body);
}
std::string joined(const std::vector<Json>& lines, const std::vector<std::string>& path) {
  std::string text;
  for (const Json& line : lines) {
    const Json value = at(line, path);
    if (value.string() != nullptr) text += *value.string();
  }
  return text;
}

std::string told(const Response& response) { return response.header("x-tessera-ignored"); }

}  // namespace

TEST_CASE("a chat is one object, or a stream of them that says the same", "[server]") {
  if (lacks_server()) return;
  const std::string rest = kHello + R"(, "options": {"temperature": 0, "num_predict": 6}})";
  const Json whole = answered("/api/chat", R"({"model": "tessera-stories", "stream": false, )" + rest);
  CHECK(text_at(whole, {"model"}) == "tessera-stories");
  CHECK(text_at(whole, {"message", "role"}) == "assistant");
  CHECK(!text_at(whole, {"message", "content"}).empty());
  CHECK(at(whole, {"done"}) == Json(true));
  CHECK(text_at(whole, {"done_reason"}) == "length");
  CHECK(number_at(whole, {"eval_count"}) == 6);
  CHECK(number_at(whole, {"prompt_eval_count"}) > 6);
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"}) CHECK(number_at(whole, {name}) > 0);
  CHECK(number_at(whole, {"total_duration"}) >= number_at(whole, {"eval_duration"}));
  CHECK(number_at(whole, {"load_duration"}) == 0);
  CHECK(text_at(whole, {"created_at"}).ends_with("Z"));

  const std::vector<Json> lines = streamed(server(), "/api/chat", R"({"model": "any:latest", )" + rest);  // which is the default
  CHECK(lines.size() > 2);
  CHECK(joined(lines, {"message", "content"}) == text_at(whole, {"message", "content"}));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(at(lines[i], {"done"}) == Json(i + 1 == lines.size()));
    CHECK(text_at(lines[i], {"model"}) == "tessera-stories:latest");
    CHECK(text_at(lines[i], {"message", "role"}) == "assistant");
  }
  CHECK(text_at(lines.back(), {"message", "content"}).empty());
  CHECK(number_at(lines.back(), {"eval_count"}) == 6);
  CHECK(text_at(lines.back(), {"done_reason"}) == "length");
}

TEST_CASE("generate shows its prompt as a turn, and raw as it stands", "[server]") {
  if (lacks_server()) return;
  const std::string options = R"("stream": false, "options": {"temperature": 0, "num_predict": 4}})";
  const Json turn = answered("/api/generate", R"({"prompt": "Once upon a time", "system": "Be kind.", )" + options);
  const Json same = answered("/api/chat", R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Once upon a time"}], )" + options);
  CHECK(text_at(turn, {"response"}) == text_at(same, {"message", "content"}));
  CHECK(number_at(turn, {"prompt_eval_count"}) == number_at(same, {"prompt_eval_count"}));
  CHECK(turn.find("message") == nullptr);
  const Json raw = answered("/api/generate", R"({"prompt": "Once upon a time", "raw": true, )" + options);
  const Json completion = answered("/v1/completions", R"({"prompt": "Once upon a time", "temperature": 0, "max_tokens": 4})");
  CHECK(text_at(raw, {"response"}) == text_at(completion, {"choices", "0", "text"}));
  CHECK(number_at(raw, {"prompt_eval_count"}) == number_at(completion, {"usage", "prompt_tokens"}));
  const auto lines = streamed(server(), "/api/generate", R"({"prompt": "Once upon a time", "raw": true, "options": {"temperature": 0, "num_predict": 4}})");
  CHECK(joined(lines, {"response"}) == text_at(raw, {"response"}));
  CHECK(refused("/api/generate", R"({"prompt": "a", "system": "b", "raw": true})").starts_with("system: "));
  CHECK(refused("/api/generate", R"({"prompt": "a", "suffix": "b"})").starts_with("suffix: "));
}

TEST_CASE("a request without a prompt loads the model or unloads it, and draws nothing", "[server]") {
  if (lacks_server()) return;
  for (const char* path : {"/api/chat", "/api/generate"}) {
    for (const char* more : {"", R"(, "keep_alive": "5m")", R"(, "keep_alive": -1, "stream": true)", R"(, "keep_alive": "1h30m", "messages": [], "prompt": "")"}) {
      const Json loaded = answered(path, fmt::format(R"({{"model": "m"{}}})", more));
      CHECK(text_at(loaded, {"done_reason"}) == "load");
      CHECK(at(loaded, {"done"}) == Json(true));
    }
    for (const char* more : {"0", R"("0")", R"("0s")", "0.0"}) CHECK(text_at(answered(path, fmt::format(R"({{"keep_alive": {}}})", more)), {"done_reason"}) == "unload");
    for (const char* more : {R"("soon")", R"("5x")", R"("")", "true", R"("-")"}) CHECK(refused(path, fmt::format(R"({{"keep_alive": {}}})", more)).starts_with("keep_alive: "));
  }
  CHECK(text_at(answered("/api/chat", "{}"), {"message", "content"}).empty());
  CHECK(text_at(answered("/api/generate", "{}"), {"response"}).empty());
  CHECK(told(server().post("/api/chat", R"({"keep_alive": "5m"})")) == "keep_alive");
  CHECK(told(server().post("/api/chat", R"({"keep_alive": -1})")).empty());
}

TEST_CASE("options have their effect, stand beside each other, or are told", "[server]") {
  if (lacks_server()) return;
  const auto text = [](const std::string& options) {
    return text_at(answered("/api/generate", R"({"prompt": "Once upon a time", "raw": true, "stream": false, )" + options + "}"), {"response"});
  };
  CHECK(text(R"("options": {"seed": 7, "num_predict": 12})") == text(R"("options": {"seed": 7, "num_predict": 12})"));
  CHECK(text(R"("options": {"seed": 7, "num_predict": 12})") != text(R"("options": {"seed": 8, "num_predict": 12})"));
  CHECK(text(R"("options": {"temperature": 0, "num_predict": 5})") == text(R"("temperature": 0, "num_predict": 5)"));
  CHECK(text(R"("temperature": 3, "options": {"temperature": 0, "num_predict": 5})") == text(R"("temperature": 0, "num_predict": 5)"));
  const Json stopped = answered("/api/generate", R"({"prompt": "Once upon a time", "raw": true, "stream": false, "options": {"temperature": 0, "stop": [" "]}})");
  CHECK(text_at(stopped, {"done_reason"}) == "stop");
  CHECK(text_at(stopped, {"response"}).find(' ') == std::string::npos);
  // num_ctx bounds the prompt and the answer together.
  const Json small = answered("/api/generate", R"({"prompt": "Once upon a time", "raw": true, "stream": false, "options": {"num_ctx": 12, "ignore_eos": true}})");
  CHECK(number_at(small, {"prompt_eval_count"}) + number_at(small, {"eval_count"}) == 12);
  CHECK(refused("/api/generate", R"({"prompt": "Once upon a time there was a little girl", "raw": true, "options": {"num_ctx": 3}})").find("is 3 tokens") != std::string::npos);
  const Response large = server().post("/api/generate", R"({"prompt": "a", "stream": false, "options": {"num_ctx": 1000000, "num_predict": 1, "num_gpu": 1, "num_thread": 4, "use_mmap": true}})");
  CHECK(large.status == 200);
  CHECK(large.header("x-tessera-warning").find("num_ctx") != std::string::npos);
  CHECK(told(large) == "options.num_gpu, options.num_thread, options.use_mmap");
  CHECK(refused("/api/chat", "{" + kHello + R"(, "options": {"top_k": "many"}})").starts_with("options.top_k: "));
  CHECK(refused("/api/chat", "{" + kHello + R"(, "options": {"tfs_z": 0.5}})").starts_with("options.tfs_z: "));
  CHECK(refused("/api/chat", "{" + kHello + R"(, "format": "xml"})").starts_with("format: "));
  CHECK(refused("/api/chat", R"({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]})").starts_with("messages[0].images: "));
  CHECK(refused("/api/chat", R"({"messages": [{"role": "king", "content": "a"}]})").starts_with("messages[0].role: "));
  for (const char* field : {R"("context": [1, 2])", R"("template": "{{ .Prompt }}")", R"("images": ["aGk="])"}) {
    const std::string error = refused("/api/generate", fmt::format(R"({{"prompt": "a", {}}})", field));
    CHECK(std::string(field).starts_with("\"" + error.substr(0, error.find(':')) + "\""));
  }
  const Json nothing = answered("/api/generate", R"({"prompt": "a", "stream": false, "context": [], "template": "", "images": [], "suffix": "", "format": "", "options": {"num_predict": 1}})");
  CHECK(number_at(nothing, {"eval_count"}) == 1);
}

TEST_CASE("format holds the answer to JSON, or to a schema", "[server]") {
  if (lacks_server()) return;
  const std::string schema = R"({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 9}, "name": {"enum": ["Lily", "Tom"]}}, "required": ["age", "name"]})";
  for (const char* path : {"/api/chat", "/api/generate"}) {
    const std::string body = "{" + kHello + R"(, "prompt": "Once", "stream": false, "format": )" + schema + "}";
    const Json whole = answered(path, body);
    const Json message = at(whole, {"message"});
    auto held = Json::parse(text_at(whole, message.is_null() ? std::vector<std::string>{"response"} : std::vector<std::string>{"message", "content"}));
    REQUIRE(held);
    CHECK(number_at(*held, {"age"}) >= 0);
    CHECK(text_at(whole, {"done_reason"}) == "stop");
  }
}

TEST_CASE("a call's arguments are an object, whole and in a stream, and a tool's answer finds its call", "[server]") {
  if (lacks_server()) return;
  const std::string tools = R"(, "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object",
    "properties": {"where": {"enum": ["up", "down"]}}, "required": ["where"]}}}], "tool_choice": "required", "parallel_tool_calls": false)";
  const auto check = [](const Json& call) {
    CHECK(text_at(call, {"function", "name"}) == "look");
    CHECK(at(call, {"function", "arguments"}).members() != nullptr);
    CHECK(text_at(call, {"function", "arguments", "where"}).size() >= 2);
    CHECK(number_at(call, {"function", "index"}) == 0);
    CHECK(text_at(call, {"id"}).starts_with("call_"));
  };
  const Json whole = answered("/api/chat", R"({"stream": false, )" + kHello + tools + "}");
  check(at(whole, {"message", "tool_calls", "0"}));
  CHECK(text_at(whole, {"done_reason"}) == "stop");
  const auto lines = streamed(server(), "/api/chat", "{" + kHello + tools + "}");
  std::size_t calls = 0;
  for (const Json& line : lines) {
    if (at(line, {"message", "tool_calls"}).is_null()) continue;
    ++calls;
    check(at(line, {"message", "tool_calls", "0"}));
    CHECK(at(line, {"done"}) == Json(false));
  }
  CHECK(calls == 1);
  const std::string turns = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"where": "up"}}}]},
    {"role": "tool", "tool_name": "look", "content": "sky"}], "stream": false, "options": {"num_predict": 2}})";
  CHECK(number_at(answered("/api/chat", turns), {"eval_count"}) <= 2);
  // An answer that is cut within a call has what there is of it as an object.
  const Json cut = answered("/api/chat", R"({"stream": false, "options": {"num_predict": 12}, )" + kHello + tools + "}");
  CHECK(text_at(cut, {"done_reason"}) == "length");
  const Json arguments = at(cut, {"message", "tool_calls", "0", "function", "arguments"});
  CHECK((arguments.is_null() || arguments.members() != nullptr));
}

TEST_CASE("a tool's answer without an id is that of the first open call of its name", "[server]") {
  if (lacks_server()) return;
  // The template writes the ids in front: the tools' answers must have those of their calls.
  const TemplateServer ids("{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{% for c in m.tool_calls or [] %}({{ c.id }}={{ c.function.name }}){% endfor %}{% if m.role == 'tool' %}({{ m.tool_call_id }}:{{ m.name }}){% endif %}{% endfor %}x");
  const auto count = [&](const std::string& messages) {
    return number_at(answered(*ids, "/api/chat", R"({"messages": )" + messages + R"(, "stream": false, "options": {"num_predict": 1}})"), {"prompt_eval_count"});
  };
  const std::string calls = R"({"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {}}}, {"function": {"name": "b", "arguments": {}}}]})";
  const auto tokens = [&](const std::string& text) { return number_at(answered(*ids, "/tokenize", R"({"add_special_tokens": false, "content": )" + Json(text).dump() + "}"), {"count"}); };
  CHECK(count("[" + calls + R"(, {"role": "tool", "tool_name": "b", "content": ""}, {"role": "tool", "content": ""}])") == tokens("(call_0=a)(call_1=b)(call_1:b)(call_0:a)x"));
}

TEST_CASE("reasoning stands beside the answer, and think turns it on and off", "[server]") {
  if (lacks_server()) return;
  const TemplateServer thinker(kThinkTemplate);
  const std::string rest = kHello + R"(, "stream": false, "options": {"num_predict": 24, "temperature": 0, "ignore_eos": true}})";
  const Json thought = answered(*thinker, "/api/chat", R"({"think": true, )" + rest);
  CHECK(!text_at(thought, {"message", "thinking"}).empty());
  CHECK(text_at(thought, {"message", "content"}).empty());
  const Json plain = answered(*thinker, "/api/chat", R"({"think": false, )" + rest);
  CHECK(at(plain, {"message", "thinking"}).is_null());
  CHECK(!text_at(plain, {"message", "content"}).empty());
  const Json some = answered(*thinker, "/api/chat", R"({"think": "low", )" + rest);  // a fifth of the answer
  CHECK(!text_at(some, {"message", "thinking"}).empty());
  CHECK(!text_at(some, {"message", "content"}).empty());
  const Json prompt = answered(*thinker, "/api/generate", R"({"prompt": "a", "think": true, "stream": false, "options": {"num_predict": 8, "ignore_eos": true}})");
  CHECK(!text_at(prompt, {"thinking"}).empty());
  const auto lines = streamed(*thinker, "/api/chat", R"({"think": true, )" + kHello + R"(, "options": {"num_predict": 24, "temperature": 0, "ignore_eos": true}})");
  CHECK(joined(lines, {"message", "thinking"}) == text_at(thought, {"message", "thinking"}));
  CHECK(refused(*thinker, "/api/chat", R"({"think": "sometimes", )" + rest, 400).starts_with("think: "));
  CHECK(refused("/api/chat", R"({"think": true, )" + rest).find("does not support thinking") != std::string::npos);
  CHECK(!text_at(answered("/api/chat", R"({"think": false, )" + rest), {"message", "content"}).empty());
  CHECK(at(answered(*thinker, "/api/show", "{}"), {"capabilities"}).dump().find("thinking") != std::string::npos);
}

TEST_CASE("log-probabilities come with the texts of their tokens", "[server]") {
  if (lacks_server()) return;
  const std::string body = R"({"prompt": "Once upon a time", "raw": true, "logprobs": true, "top_logprobs": 2, "options": {"num_predict": 3, "temperature": 0})";
  const Json whole = answered("/api/generate", body + R"(, "stream": false})");
  const Json list = at(whole, {"logprobs"});
  REQUIRE(list.elements() != nullptr);
  CHECK(list.elements()->size() == 3);
  CHECK(at(list, {"0", "top_logprobs"}).elements()->size() == 2);
  std::size_t count = 0;
  for (const Json& line : streamed(server(), "/api/generate", body + "}")) {
    if (const Json some = at(line, {"logprobs"}); some.elements() != nullptr) count += some.elements()->size();
  }
  CHECK(count == 3);
}

TEST_CASE("embed gives vectors of length 1, shortened and cut as asked", "[server]") {
  if (lacks_server()) return;
  const auto length = [](const Json& vector) {
    double squares = 0.0;
    for (const Json& each : *vector.elements()) squares += std::pow(each.number() != nullptr ? *each.number() : static_cast<double>(*each.integer()), 2);
    return std::sqrt(squares);
  };
  const Json two = answered("/api/embed", R"({"input": ["a dog", "a cat"]})");
  REQUIRE(at(two, {"embeddings"}).elements()->size() == 2);
  CHECK(std::abs(length(at(two, {"embeddings", "0"})) - 1.0) < 1e-4);
  CHECK(number_at(two, {"prompt_eval_count"}) > 1);
  const Json one = answered("/api/embed", R"({"input": "a dog", "keep_alive": "5m"})");
  CHECK(at(one, {"embeddings", "0"}) == at(two, {"embeddings", "0"}));
  CHECK(at(answered("/api/embeddings", R"({"prompt": "a dog"})"), {"embedding"}) == at(two, {"embeddings", "0"}));
  CHECK(at(answered("/v1/embeddings", R"({"input": "a dog"})"), {"data", "0", "embedding"}) == at(two, {"embeddings", "0"}));
  const Json few = at(answered("/api/embed", R"({"input": "a dog", "dimensions": 8})"), {"embeddings", "0"});
  CHECK(few.elements()->size() == 8);
  CHECK(std::abs(length(few) - 1.0) < 1e-4);
  const Response cut = server().post("/api/embed", R"({"input": "a dog and a cat and a bird", "options": {"num_ctx": 3}})");
  CHECK(cut.status == 200);
  CHECK(number_at(cut.json(), {"prompt_eval_count"}) == 3);
  CHECK(cut.header("x-tessera-warning").find("the first 3 are read") != std::string::npos);
  CHECK(refused("/api/embed", R"({"input": "a dog and a cat and a bird", "truncate": false, "options": {"num_ctx": 3}})").starts_with("input: "));
  CHECK(refused("/api/embed", R"({"input": [1]})").starts_with("input[0]: "));
  CHECK(at(answered("/api/embed", R"({"input": ""})"), {"embeddings"}).elements()->empty());
  CHECK(at(answered("/api/embeddings", "{}"), {"embedding"}).elements()->empty());
}

TEST_CASE("the model is listed, shown and running under both of its names", "[server]") {
  if (lacks_server()) return;
  const TemplateServer strict(kTemplate, {"--strict-model", "--model-id", "org/tiny"});
  for (const char* path : {"/api/tags", "/api/ps"}) {
    const Json model = at(strict->request("GET", path).json(), {"models", "0"});
    CHECK(text_at(model, {"name"}) == "org/tiny:latest");
    CHECK(text_at(model, {"model"}) == "org/tiny:latest");
    CHECK(text_at(model, {"digest"}).size() == 64);
    CHECK(number_at(model, {"size"}) > 0);
    CHECK(text_at(model, {"details", "format"}) == "gguf");
    CHECK(!text_at(model, {"details", "family"}).empty());
    CHECK(!text_at(model, {"details", "quantization_level"}).empty());
  }
  CHECK(number_at(at(strict->request("GET", "/api/ps").json(), {"models", "0"}), {"context_length"}) > 0);
  CHECK(text_at(strict->request("GET", "/api/version").json(), {"version"}).find('.') != std::string::npos);
  const Json shown = answered(*strict, "/api/show", R"({"model": "org/tiny"})");
  CHECK(text_at(shown, {"template"}) == kTemplate);
  const std::string family = text_at(shown, {"details", "family"});
  CHECK(text_at(shown, {"model_info", "general.architecture"}) == family);
  CHECK(number_at(shown, {"model_info", family + ".context_length"}) > 0);
  CHECK(at(shown, {"model_info", "general.parameter_count"}).integer() != nullptr);
  CHECK(text_at(shown, {"capabilities", "0"}) == "completion");
  CHECK(text_at(answered(*strict, "/api/show", R"({"name": "org/tiny:latest"})"), {"details", "family"}) == family);
  CHECK(text_at(answered(*strict, "/api/chat", R"({"model": "org/tiny:latest"})"), {"model"}) == "org/tiny:latest");
  CHECK(refused(*strict, "/api/chat", R"({"model": "llama3"})", 404).find("llama3") != std::string::npos);
  CHECK(refused(*strict, "/api/show", R"({"model": "org/tiny:8b"})", 404).find("org/tiny:8b") != std::string::npos);
  const RunningServer tagged({"--no-log", "--model-id", "host:80/tiny:8b"});
  CHECK(text_at(tagged.request("GET", "/api/tags").json(), {"models", "0", "name"}) == "host:80/tiny:8b");
}

TEST_CASE("what would change the server's models is a 501 that says what it serves", "[server]") {
  if (lacks_server()) return;
  const std::string body = R"({"model": "llama3"})";
  for (const char* path : {"/api/pull", "/api/push", "/api/create", "/api/copy", "/api/blobs/sha256:00"}) {
    CHECK(refused(path, body, 501).find("started with") != std::string::npos);
  }
  CHECK(server().request("DELETE", "/api/delete", {}, body).status == 501);
  CHECK(server().request("HEAD", "/api/blobs/sha256:00").status == 501);
  const Response wrong = server().post("/api/delete", body);
  CHECK(wrong.status == 405);
  CHECK(wrong.header("allow") == "DELETE, OPTIONS");
  CHECK(refused("/api/nothing", body, 404).find("/api/nothing") != std::string::npos);
  CHECK(refused("/api/chat", "{", 400).find("no JSON") != std::string::npos);
  // As `curl -d` sends it, and as a page's form could.
  CHECK(server().post("/api/show", body, {{"Content-Type", "application/x-www-form-urlencoded"}}).status == 200);
  CHECK(server().post("/api/show", body, {{"Content-Type", "text/plain"}}).status == 415);
  CHECK(server().post("/v1/chat/completions", body, {{"Content-Type", "application/x-www-form-urlencoded"}}).status == 415);
  CHECK(server().post("/api/show", body, {{"Origin", "https://evil.example"}}).status == 403);
}

TEST_CASE("at / a browser gets the page, and a client the words that it looks for", "[server]") {
  if (lacks_server()) return;
  const Response greeting = server().request("GET", "/");
  CHECK(greeting.status == 200);
  CHECK(greeting.body == "Ollama is running");
  CHECK(greeting.header("content-type").starts_with("text/plain"));
  CHECK(server().request("GET", "/", {{"Accept", "*/*"}}).body == greeting.body);
  CHECK(server().request("HEAD", "/").status == 200);
  CHECK(server().request("GET", "/", {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}}).header("content-type").starts_with("text/html"));
  CHECK(server().post("/", "{}").status == 405);
  CHECK(server().request("GET", "/", {{"Host", "evil.example"}}).status == 403);
  CHECK(server().request("GET", "/nothing").status == 404);
}

TEST_CASE("a client that leaves a stream ends its request", "[server]") {
  if (lacks_server()) return;
  const std::string body = "{" + kHello + R"(, "options": {"ignore_eos": true, "num_predict": 100000}})";
  const RunningServer own;
  Connection connection(own.port());
  REQUIRE(connection.send_request("POST", "/api/chat", {}, body));
  REQUIRE(connection.receive_head().status == 200);
  REQUIRE(!connection.receive_body_some().empty());
  connection.drop();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (own.log().find("/api/chat 499") == std::string::npos && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(own.log().find("/api/chat 499") != std::string::npos);
  // The log line may come before the step that ends the request.
  const auto running = [&] { return number_at(own.request("GET", "/status.json").json(), {"running"}); };
  while (running() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(running() == 0);
}

TEST_CASE("an answer that fails in the middle ends its stream with an error in a line", "[server]") {
  if (lacks_server()) return;
  const RunningServer tiny({"--no-log", "-m", kTiny});
  // The answer must be "ab", and nothing may follow "a".
  std::string biases;
  for (int id = 0; id < 104; ++id) {
    const Response text = tiny.post("/detokenize", fmt::format(R"({{"tokens": [{}]}})", id));
    const bool is_a = text.status == 200 && text_at(text.json(), {"prompt"}) == "a";
    if (!is_a) biases += fmt::format(R"({}"{}": -100)", biases.empty() ? "" : ", ", id);
  }
  const std::string body = R"({"prompt": "a", "raw": true, "guided_regex": "ab", "options": {"logit_bias": {)" + biases + "}}";
  const auto lines = streamed(tiny, "/api/generate", body + "}");
  CHECK(joined(lines, {"response"}) == "a");
  CHECK(text_at(lines.back(), {"error"}).find("No token is left") != std::string::npos);
  CHECK(lines.back().find("done") == nullptr);
  CHECK(refused(tiny, "/api/generate", body + R"(, "stream": false})", 400).find("No token is left") != std::string::npos);
}

}  // namespace test_server_ollama
