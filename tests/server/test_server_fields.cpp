// What becomes of fields that the server does not honour, and of peers' names for what it does (docs/server.md, "Fields").
#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_fields {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

const RunningServer& plain_server() {
  static const RunningServer server;
  return server;
}

const std::string kChat = R"("messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": 4, "temperature": 0)";
const std::string kResponse = R"("input": "Once upon a time", "max_output_tokens": 4, "temperature": 0)";
const std::string kComplete = R"("prompt": "Once upon a time", "max_tokens": 4, "temperature": 0)";

struct Way {
  std::string path, body;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"/v1/chat/completions", kChat}, {"/v1/responses", kResponse}, {"/v1/messages", kChat}, {"/v1/completions", kComplete}};
  return all;
}

Response post(const Way& way, const std::string& more) { return plain_server().post(way.path, "{" + way.body + ", " + more + "}"); }

// The field that an error of either API names.
std::string named(const Response& response) {
  const Json error = at(response.json(), {"error"});
  if (error.find("param") != nullptr) return text_at(error, {"param"});
  const std::string message = text_at(error, {"message"});
  return message.substr(0, message.find(':'));
}

std::string content(const Response& response) {
  INFO(response.body);
  REQUIRE(response.status == 200);
  return text_at(response.json(), {"choices", "0", "message", "content"});
}

}  // namespace

TEST_CASE("fields without effect are accepted, and named in the answer's header and in the log", "[server]") {
  if (lacks_server()) return;
  for (const Way& way : ways()) {
    CAPTURE(way.path);
    const Response response = post(way, R"("metadata": {"a": "b"}, "service_tier": "auto", "no_such_field": 1, "betas": ["x"], "prompt_cache_key": "k", "user": null)");
    CHECK(response.status == 200);
    CHECK(response.header("x-tessera-ignored") == "metadata, service_tier, no_such_field, betas, prompt_cache_key");
    CHECK(post(way, R"("seed": 1)").header("x-tessera-ignored").empty());
    const Response hostile = post(way, R"("a\r\nSet-Cookie: b\u00e9": 1)");
    CHECK(hostile.status == 200);
    CHECK(hostile.header("set-cookie").empty());
    CHECK(hostile.header("x-tessera-ignored") == "a??Set-Cookie: b??");
  }
  for (int i = 0; i < 200 && plain_server().log().find("ignored: metadata, service_tier, no_such_field") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(plain_server().log().find("ignored: metadata, service_tier, no_such_field") != std::string::npos);
  const Response nested = plain_server().post("/v1/messages", R"({"max_tokens": 1, "messages": [{"role": "user", "x": 1, "content": [{"type": "text", "text": "a", "y": 1,
    "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b", "y": 2}]}]})");
  CHECK(nested.status == 200);
  CHECK(nested.header("x-tessera-ignored") == "messages[].x, messages[].content[].y, messages[].content[].cache_control");
}

TEST_CASE("what could change the answer is refused by name, unless it asks for nothing", "[server]") {
  if (lacks_server()) return;
  for (const Way& way : ways()) {
    CAPTURE(way.path);
    for (const char* name : {"guided_decoding_backend", "format", "output_schema", "x_regex", "lark"}) {
      const Response response = post(way, fmt::format(R"("{}": "xgrammar")", name));
      CHECK(response.status == 400);
      CHECK(named(response) == name);
    }
    for (const auto& [name, harmless, asking] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"min_tokens", "0", "4"}, {"bad_words", "[]", R"(["a"])"}, {"use_beam_search", "false", "true"}, {"n_probs", "0", "2"}}) {
      CHECK(post(way, fmt::format(R"("{}": {})", name, harmless)).status == 200);
      const Response response = post(way, fmt::format(R"("{}": {})", name, asking));
      CHECK(response.status == 400);
      CHECK(named(response) == name);
    }
  }
  const Way &chat = ways()[0], &responses = ways()[1], &messages = ways()[2];
  CHECK(post(chat, R"("modalities": ["text"])").status == 200);
  CHECK(named(post(chat, R"("modalities": ["text", "audio"])")) == "modalities");
  CHECK(named(post(responses, R"("background": true)")) == "background");
  CHECK(named(post(messages, R"("context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]})")) == "context_management");
  CHECK(post(messages, R"("context_management": {"edits": []})").status == 200);
  const Response picture = plain_server().post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]})");
  CHECK(picture.status == 400);
  CHECK(named(picture) == "messages[0].content[0].type");
  CHECK(text_at(picture.json(), {"error", "message"}).find("pictures") != std::string::npos);
}

TEST_CASE("--strict-fields and --strict-model refuse what is else accepted", "[server]") {
  if (lacks_server()) return;
  const RunningServer strict({"--no-log", "--strict-fields", "--strict-model"});
  for (const Way& way : ways()) {
    CAPTURE(way.path);
    CHECK(strict.post(way.path, "{" + way.body + "}").status == 200);
    for (const char* name : {"metadata", "no_such_field", "service_tier"}) {
      const Response response = strict.post(way.path, fmt::format(R"({{{}, "{}": {{}}}})", way.body, name));
      CHECK(response.status == 400);
      CHECK(named(response) == name);
    }
    const Response other = strict.post(way.path, "{" + way.body + R"(, "model": "gpt-5"})");
    CHECK(other.status == 404);
    const Response taken = plain_server().post(way.path, "{" + way.body + R"(, "model": "gpt-5"})");
    CHECK(taken.status == 200);
    CHECK(text_at(taken.json(), {"model"}) == "tessera-stories");
  }
  const Response tool = strict.post("/v1/responses", "{" + kResponse + R"(, "tools": [{"type": "web_search"}]})");
  CHECK(tool.status == 400);
  CHECK(named(tool) == "tools[0]");
}

TEST_CASE("peers' names for what an answer must be are held", "[server]") {
  if (lacks_server()) return;
  const auto answer = [](const std::string& more) {
    return content(plain_server().post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "n_predict": 40, "temperature": 2, "seed": 7, )" + more + "}"));
  };
  const auto is_one = [](const std::string& text) { return text == "a.b" || text == "c|d"; };
  CHECK(is_one(answer(R"("guided_choice": ["a.b", "c|d"])")));
  CHECK(is_one(answer(R"("structured_outputs": {"choice": ["a.b", "c|d"]})")));
  CHECK(is_one(answer(R"("guided_grammar": "root ::= \"a.b\" | \"c|d\"")")));
  CHECK(is_one(answer(R"("structured_outputs": {"grammar": "root ::= \"a.b\" | \"c|d\""})")));
  CHECK(is_one(answer(R"("structured_outputs": {"regex": "a\\.b|c\\|d"})")));
  const std::string schema = R"({"type": "object", "required": ["k"], "properties": {"k": {"enum": [1, 2]}}})";
  for (const std::string& more : {"\"json_schema\": " + schema, "\"guided_json\": " + Json(schema).dump(), R"("structured_outputs": {"json": )" + schema + "}"}) {
    const auto json = Json::parse(answer(more));
    REQUIRE(json);
    CHECK((number_at(*json, {"k"}) == 1 || number_at(*json, {"k"}) == 2));
  }
  for (const Way& way : ways()) {
    CAPTURE(way.path);
    const Response two = post(way, R"("guided_regex": "a", "structured_outputs": {"choice": ["b"]})");
    CHECK(two.status == 400);
    CHECK(named(two) == "structured_outputs.choice");
    CHECK(named(post(way, R"("structured_outputs": {"structural_tag": "x"})")) == "structured_outputs.structural_tag");
  }
  const Response whole = plain_server().post("/v1/completions", R"({"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["x"]}}}})");
  REQUIRE(whole.status == 200);
  CHECK(text_at(whole.json(), {"choices", "0", "text"}).find("\"x\"") != std::string::npos);
}

TEST_CASE("peers' names for how tokens are drawn are read, and change the answer", "[server]") {
  if (lacks_server()) return;
  const auto answer = [](const std::string& more) {
    const Response response = plain_server().post("/v1/completions", R"({"prompt": "Once upon a time", "n_predict": 30, "seed": 3, "temperature": 1.5, "top_p": 1, )" + more + "}");
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(response.header("x-tessera-ignored").empty());
    CHECK(number_at(response.json(), {"usage", "completion_tokens"}) == 30);
    return text_at(response.json(), {"choices", "0", "text"});
  };
  const std::string plain = answer(R"("ignore_eos": true)"), eos = R"("ignore_eos": true, )";
  for (const char* more : {R"("top_k": 1)", R"("min_p": 0.9)", R"("typical_p": 0.02)", R"("top_n_sigma": 0.1)", R"("repetition_penalty": 9)", R"("repeat_penalty": 9)",
                           R"("xtc_probability": 1, "xtc_threshold": 0.01)", R"("mirostat": 2, "mirostat_tau": 0.1)", R"("dynatemp_range": 1.5)"}) {
    INFO(more);
    CHECK(answer(eos + more) != plain);
  }
  // DRY takes what would repeat: the prompt is a loop, and a bias has the answer go on with it.
  const auto looped = [](const std::string& more) {
    const Response response = plain_server().post("/v1/completions", R"({"prompt": [300, 301, 302, 300, 301, 302, 300, 301], "max_tokens": 1, "temperature": 0, "logit_bias": {"302": 60})" + more + "}");
    REQUIRE(response.status == 200);
    return text_at(response.json(), {"choices", "0", "text"});
  };
  CHECK(looped(R"(, "dry_multiplier": 90, "dry_sequence_breakers": ["\n"], "penalize_prompt": true)") != looped(""));
  // Penalties and DRY count the answer alone, unless the request says otherwise: here there is none yet.
  const auto first = [](const std::string& more) {
    const Response response = plain_server().post("/v1/completions", R"({"prompt": [300, 301, 302, 300, 301, 302, 300, 301], "max_tokens": 1, "temperature": 0, "logit_bias": {"302": 60}, )" + more + "}");
    REQUIRE(response.status == 200);
    return text_at(response.json(), {"choices", "0", "text"});
  };
  for (const auto& [penalty, looks_back] : {std::pair(R"("repetition_penalty": 10)", R"("repeat_last_n": -1)"), std::pair(R"("repeat_penalty": 10)", R"("repeat_last_n": 4)"),
                                            std::pair(R"("dry_multiplier": 90, "dry_sequence_breakers": ["\n"])", R"("dry_penalty_last_n": -1)")}) {
    CAPTURE(penalty);
    const std::string held = penalty, with = held + ", ", kept = looped("");
    CHECK(first(held) == kept);
    CHECK(first(with + R"("penalize_prompt": false)") == kept);
    CHECK(first(with + R"("penalize_prompt": true)") != kept);
    CHECK(first(with + looks_back) != kept);
    CHECK(first(with + looks_back + R"(, "penalize_prompt": false)") == kept);
  }
  for (const char* bad : {R"("mirostat": 1)", R"("typical_p": 0)", R"("dry_base": 0)"}) CHECK(post(ways()[3], bad).status == 400);
}

TEST_CASE("limits: -1 is as many as there is room for, null is the default, nothing is a 500", "[server]") {
  if (lacks_server()) return;
  const std::string chat = R"({"messages": [{"role": "user", "content": "Hi"}], "stop": ["e"], )";
  for (const char* more : {R"("max_tokens": -1})", R"("max_tokens": null, "seed": -1, "top_k": -1})", R"("n_predict": -1})", R"("stop": ""})", R"("stop": ["", "X"], "max_tokens": 2})"}) {
    INFO(more);
    CHECK(plain_server().post("/v1/chat/completions", chat + more).status == 200);
  }
  const Response four = plain_server().post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 4, "ignore_eos": true})");
  CHECK(number_at(four.json(), {"usage", "completion_tokens"}) == 4);
  CHECK(text_at(four.json(), {"choices", "0", "finish_reason"}) == "length");
  CHECK(post(ways()[0], R"("max_completion_tokens": 0)").status == 400);
  // All tokens banned: a mistake of the request, not a failure of the server.
  const std::int64_t vocabulary = number_at(plain_server().request("GET", "/v1/models/tessera-stories").json(), {"meta", "vocabulary"});
  REQUIRE(vocabulary > 0);
  std::string bans = "\"0\": -100";
  for (std::int64_t token = 1; token < vocabulary; ++token) bans += fmt::format(", \"{}\": -100", token);
  const Response none = post(ways()[3], R"("logit_bias": {)" + bans + "}");
  CHECK(none.status == 400);
  CHECK(named(none) == "logit_bias");
}

TEST_CASE("a form that no token of the model can write is the request's fault", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"-m", kTiny});  // its vocabulary has no bytes
  const Response none = server.post("/v1/completions", R"({"prompt": [1], "max_tokens": 2, "guided_regex": "\u5bb6"})");
  INFO(none.body);
  CHECK(none.status == 400);
  CHECK(text_at(none.json(), {"error", "message"}).find("no token for the characters") != std::string::npos);
}

}  // namespace test_server_fields
