// POST /v1/completions: the prompt's own log-probabilities, answers without tokens, the best of several; and conversations that
// do not fit.
#include <cmath>

#include <fmt/format.h>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "server/http_client.hpp"

namespace test_server_completions {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

const RunningServer& completing() {
  static const RunningServer server({"--no-log"});
  return server;
}

Json completed(const std::string& body) {
  const Response response = completing().post("/v1/completions", "{" + body + "}");
  INFO(body << ": " << response.body);
  REQUIRE(response.status == 200);
  return response.json();
}

double real_at(const Json& json, const std::vector<std::string>& path) {
  const Json value = at(json, path);
  if (value.number() != nullptr) return *value.number();
  return value.integer() != nullptr ? static_cast<double>(*value.integer()) : std::nan("");
}

std::size_t size_at(const Json& json, const std::vector<std::string>& path) {
  const Json value = at(json, path);
  return value.elements() != nullptr ? value.elements()->size() : 0;
}

}  // namespace

TEST_CASE("echo with logprobs scores the prompt as the answer's own tokens are scored, with max_tokens 0 too", "[server]") {
  if (lacks_server()) return;
  // What a greedy answer says of its tokens is what the prompt says that has them.
  const Json answer = completed(R"("prompt": "Once upon a time", "max_tokens": 6, "temperature": 0, "logprobs": 2)");
  const std::string text = text_at(answer, {"choices", "0", "text"});
  const Json ids = completing().post("/tokenize", R"({"prompt": "Once upon a time"})").json();
  const std::size_t prompt = size_at(ids, {"tokens"});
  Json::Array all = *at(ids, {"tokens"}).elements();
  const Json whole = completing().post("/tokenize", R"({"prompt": )" + Json("Once upon a time" + text).dump() + "}").json();
  REQUIRE(size_at(whole, {"tokens"}) == prompt + 6);  // the same tokens
  for (const int most : {0, 1}) {
    const Json scored = completed(fmt::format(R"("prompt": {}, "max_tokens": {}, "temperature": 0, "logprobs": 2, "echo": true)", at(whole, {"tokens"}).dump(), most));
    const std::vector<std::string> logprobs{"choices", "0", "logprobs"};
    const Json l = at(scored, logprobs);
    REQUIRE(size_at(l, {"tokens"}) == prompt + 6 + static_cast<std::size_t>(most));
    CHECK(size_at(l, {"token_logprobs"}) == size_at(l, {"tokens"}));
    CHECK(size_at(l, {"top_logprobs"}) == size_at(l, {"tokens"}));
    CHECK(at(l, {"token_logprobs", "0"}).is_null());
    CHECK(at(l, {"top_logprobs", "0"}).is_null());
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(std::fabs(real_at(l, {"token_logprobs", std::to_string(prompt + i)}) - real_at(answer, {"choices", "0", "logprobs", "token_logprobs", std::to_string(i)})) < 1e-4);
      CHECK(text_at(l, {"tokens", std::to_string(prompt + i)}) == text_at(answer, {"choices", "0", "logprobs", "tokens", std::to_string(i)}));
      CHECK(at(l, {"top_logprobs", std::to_string(prompt + i)}).members()->size() == 2);
    }
    CHECK(number_at(scored, {"usage", "completion_tokens"}) == most);
    CHECK(number_at(scored, {"usage", "prompt_tokens"}) == static_cast<std::int64_t>(prompt + 6));
    CHECK(text_at(scored, {"choices", "0", "finish_reason"}) == "length");
    CHECK(text_at(scored, {"choices", "0", "text"}).starts_with("Once upon a time" + text));
  }
  // lm-eval sends several lists of ids at once, and streams may ask too.
  const Json two = completed(R"("prompt": [[65, 66, 67], [68, 69]], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": true)");
  CHECK(size_at(two, {"choices", "0", "logprobs", "tokens"}) == 4);
  CHECK(size_at(two, {"choices", "1", "logprobs", "tokens"}) == 3);
  Connection connection(completing().port());
  connection.send_request("POST", "/v1/completions", {}, R"({"prompt": [65, 66, 67], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": true, "stream": true})");
  REQUIRE(connection.receive_head().status == 200);
  std::size_t streamed = 0;
  for (const ServerEvent& event : connection.all_events()) {
    if (event.data != "[DONE]") streamed += size_at(event.json(), {"choices", "0", "logprobs", "tokens"});
  }
  CHECK(streamed == 4);
  CHECK(text_at(completed(R"("prompt": "a", "max_tokens": 0)"), {"choices", "0", "text"}).empty());
  const Response long_one = completing().post("/v1/completions", R"({"prompt": [)" + [] {
    std::string ids_text = "65";
    for (int i = 0; i < 600; ++i) ids_text += ", 65";
    return ids_text;
  }() + R"(], "max_tokens": 0, "echo": true, "logprobs": 1})");
  CHECK(long_one.status == 400);
  CHECK(text_at(long_one.json(), {"error", "message"}).find("512") != std::string::npos);
  CHECK(text_at(long_one.json(), {"error", "message"}).find("601") != std::string::npos);
}

TEST_CASE("the scores of a prompt are those of Session::score, to the last digit", "[server]") {
  if (lacks_server()) return;
  const tessera::Engine engine = tessera::Engine::load(kStories, {.threads = 1}).value();
  const Json ids = completing().post("/tokenize", R"({"prompt": "Once upon a time there was a little dog. He liked the red ball, and the moon."})").json();
  std::vector<tessera::Token> tokens;
  const Json::Array list = *at(ids, {"tokens"}).elements();
  for (const Json& id : list) tokens.push_back(static_cast<tessera::Token>(*id.integer()));
  tessera::Session session = engine.session().value();
  const std::vector<float> expected = session.score(tokens).value();
  const Json scored = completed(fmt::format(R"("prompt": {}, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": true)", at(ids, {"tokens"}).dump()));
  REQUIRE(expected.size() == tokens.size());
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    INFO(i);
    const double score = real_at(scored, {"choices", "0", "logprobs", "token_logprobs", std::to_string(i)});
    CHECK(score == static_cast<double>(expected[i]));
    // lm-eval takes a token for the likeliest one if both numbers are equal.
    const Json top = at(scored, {"choices", "0", "logprobs", "top_logprobs", std::to_string(i)});
    REQUIRE(top.members()->size() == 1);
    const std::string& text = top.members()->front().first;
    CHECK((real_at(top, {text}) == score) == (text == text_at(scored, {"choices", "0", "logprobs", "tokens", std::to_string(i)})));
  }
}

TEST_CASE("tokenizer_info says what /tokenize does, in vLLM's fields", "[server]") {
  if (lacks_server()) return;
  const Json info = completing().request("GET", "/tokenizer_info").json();
  for (const std::string name : {"bos_token", "eos_token"}) {
    INFO(name);
    const std::string body = fmt::format(R"({{"prompt": {}, "add_special_tokens": false}})", at(info, {name}).dump());
    CHECK(size_at(completing().post("/tokenize", body).json(), {"tokens"}) == 1);
  }
  const std::size_t with = size_at(completing().post("/tokenize", R"({"prompt": "a"})").json(), {"tokens"});
  const std::size_t without = size_at(completing().post("/tokenize", R"({"prompt": "a", "add_special_tokens": false})").json(), {"tokens"});
  CHECK(at(info, {"add_bos_token"}).dump() == (with > without ? "true" : "false"));
  CHECK(number_at(info, {"model_max_length"}) == 512);
  CHECK(at(info, {"chat_template"}).is_null() != *at(completing().request("GET", "/v1/models").json(), {"data", "0", "meta", "has_chat_template"}).boolean());
}

TEST_CASE("offsets are counted in characters", "[server]") {
  if (lacks_server()) return;
  const std::string prompt = "Zo\u00eb \u00e4\u00e4\u00e4 once";
  for (const bool scored : {false, true}) {
    const Json answer = completed(R"("prompt": ")" + prompt + R"(", "max_tokens": 2, "temperature": 0, "logprobs": 1, "echo": )" + (scored ? "true" : "false"));
    const std::size_t tokens = size_at(answer, {"choices", "0", "logprobs", "text_offset"});
    REQUIRE(tokens >= 2);
    CHECK(number_at(answer, {"choices", "0", "logprobs", "text_offset", std::to_string(tokens - 2)}) == (scored ? 12 : 0));
  }
}

TEST_CASE("best_of shows the likeliest answers, and counts all", "[server]") {
  if (lacks_server()) return;
  const std::string body = R"("prompt": "Once upon a time", "max_tokens": 5, "ignore_eos": true, "temperature": 1.5, "seed": 5, "logprobs": 1, )";
  const auto mean = [](const Json& answer, const std::string& choice) {
    double sum = 0.0;
    for (int i = 0; i < 5; ++i) sum += real_at(answer, {"choices", choice, "logprobs", "token_logprobs", std::to_string(i)});
    return sum / 5;
  };
  const Json all = completed(body + R"("n": 4)"), best = completed(body + R"("n": 2, "best_of": 4)");
  std::vector<double> means;
  for (const char* choice : {"0", "1", "2", "3"}) means.push_back(mean(all, choice));
  std::ranges::sort(means, std::greater());
  REQUIRE(size_at(best, {"choices"}) == 2);
  CHECK(std::fabs(mean(best, "0") - means[0]) < 1e-6);
  CHECK(std::fabs(mean(best, "1") - means[1]) < 1e-6);
  CHECK(number_at(best, {"usage", "completion_tokens"}) == 20);
  CHECK(text_at(best, {"choices", "1", "index"}) == "1");
  CHECK(completing().post("/v1/completions", R"({"prompt": "a", "n": 2, "best_of": 1})").status == 400);
  CHECK(completing().post("/v1/completions", R"({"prompt": "a", "best_of": 2, "stream": true})").status == 400);
  CHECK(size_at(completed(R"("prompt": "a", "best_of": 2, "max_tokens": 1)"), {"choices"}) == 1);
}

TEST_CASE("a conversation that does not fit is a 400 with both numbers, or loses its old turns where that is asked for", "[server]") {
  if (lacks_server()) return;
  std::string turns = R"({"role": "system", "content": "Be kind."}, )";
  for (int i = 0; i < 40; ++i) turns += fmt::format(R"({{"role": "user", "content": "Tell me the story number {} of the cat and the dog"}}, {{"role": "assistant", "content": "No."}}, )", i);
  turns += R"({"role": "user", "content": "go"})";
  for (const auto& [path, body] : {std::pair("/v1/chat/completions", R"("max_tokens": 4, "messages": [)"), std::pair("/v1/messages", R"("max_tokens": 4, "messages": [)"),
                                   std::pair("/v1/responses", R"("max_output_tokens": 4, "input": [)")}) {
    CAPTURE(path);
    const std::string request = "{" + std::string(body) + turns + "]";
    const Response full = completing().post(path, request + "}");
    CHECK(full.status == 400);
    CHECK(full.body.find("512 tokens, and the prompt has ") != std::string::npos);
    const Response cut = completing().post(path, request + R"(, "truncation": "auto"})");
    INFO(cut.body);
    CHECK(cut.status == 200);
  }
}

}  // namespace test_server_completions
