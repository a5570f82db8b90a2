// The gateway's parts without a network: questions, answers, routes, certainty, compression.
#include <fmt/format.h>

#include "api_error.hpp"
#include "requests/answer.hpp"
#include "catch.hpp"
#include "tiers/certainty.hpp"
#include "requests/compressor.hpp"
#include "failure.hpp"
#include "tiers/router.hpp"
#include "upstream.hpp"

namespace test_gateway_parts {

using namespace gateway;
using server::parse_url;
using tessera::Json;

namespace {

Question chat(const std::string& members) { return read_question(Api::chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]" + members + "}", {}); }
std::string never(const std::string& members) { return chat(members).never_cached; }
Json must_parse(std::string_view text) {
  auto json = Json::parse(text, {.numbers_as_written = true});
  REQUIRE(json);
  return *json;
}
Route route(const Router& router, const Question& question) {
  return router.route(question, [] { return std::span<const float>(); }).route;
}
Question asking(const std::string& text) { return read_question(Api::completions, "{\"prompt\":" + Json(text).dump() + "}", {}); }

}  // namespace

TEST_CASE("a question is its last text; everything else that matters is its context", "[gateway]") {
  const Question q = read_question(
      Api::chat, R"({"model":"m","stream":true,"stream_options":{"include_usage":true},"user":"u7","messages":[{"role":"system","content":"Be short."},{"role":"user","content":[{"type":"text","text":"What is "},{"type":"text","text":"a cat?"}]}]})", {});
  CHECK(q.text == "What is a cat?");
  CHECK(q.streams);
  CHECK(q.wants_usage);
  CHECK(q.never_cached.empty());
  CHECK(q.context.find("u7") == std::string::npos);
  CHECK(q.context.find("Be short.") != std::string::npos);
  CHECK(chat(R"(,"model":"m","seed":1)").context == chat(R"(,"seed":1,"model":"m","stream":true)").context);
  CHECK(chat(R"(,"seed":1)").context != chat(R"(,"seed":2)").context);
  CHECK(chat(R"(,"temperature":0.50)").context != chat(R"(,"temperature":0.7)").context);
  const auto from = [](std::string_view name) {
    return read_question(Api::chat, fmt::format(R"({{"messages":[{{"role":"user","name":"{}","content":"Who am I?"}}]}})", name), {}).context;
  };
  CHECK(from("alice") != from("bob"));
  CHECK(read_question(Api::chat, R"({"messages":["no object"]})", {}).never_cached == "the last message is not the user's");
}

TEST_CASE("questions whose answers must not be reused say why", "[gateway]") {
  CHECK(never("").empty());
  CHECK(never(R"(,"tools":[{"type":"function"}])") == "tools");
  CHECK(never(R"(,"tools":[])").empty());
  CHECK(never(R"(,"n":2)") == "several answers");
  CHECK(never(R"(,"temperature":1.5)") == "temperature");
  CHECK(never(R"(,"logprobs":true)") == "logprobs");
  CHECK(never(R"(,"logprobs":false)").empty());
  CHECK(read_question(Api::chat, R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", {}).never_cached == "the last message is not a text");
  CHECK(read_question(Api::chat, R"({"messages":[{"role":"assistant","content":"x"}]})", {}).never_cached == "the last message is not the user's");
  CHECK(read_question(Api::completions, R"({"prompt":["a","b"]})", {}).never_cached == "the prompt is not one text");
  CHECK(read_question(Api::completions, R"({"prompt":")" + std::string(5000, 'a') + "\"}", {}).never_cached == "a long text");
  for (const char* broken : {"", "{", "[]", "{}", R"({"messages":[]})", R"({"messages":[{"role":"user","content":"x"}],"stream":"yes"})"}) {
    CHECK_THROWS_AS(read_question(Api::chat, broken, {}), server::ApiError);
  }
}

TEST_CASE("an answer is the same text as an object and as a stream", "[gateway]") {
  const Answer answer{.text = "Täglich frisch: " + std::string(200, 'x') + "\n\nEnde", .model = "m", .prompt_tokens = 3, .completion_tokens = 4, .is_plain = true};
  for (const Api api : {Api::chat, Api::completions}) {
    const auto read = read_answer(api, must_parse(to_object(api, answer)));
    REQUIRE(read);
    CHECK(read->text == answer.text);
    CHECK(read->is_plain);
    CHECK(read->completion_tokens == 4);
    EventReader reader(api);
    std::string passed;
    const std::string events = to_events(api, answer, true);
    for (const char c : events) reader.add(std::string_view(&c, 1), true, [&](const std::string& event) { passed += event; });  // in the smallest pieces
    CHECK(passed == events);
    CHECK(reader.ended());
    CHECK(reader.answer().text == answer.text);
    CHECK(reader.answer().is_plain);
    CHECK(reader.answer().prompt_tokens == 3);
  }
  EventReader reader(Api::chat);
  std::size_t events = 0;
  reader.add(to_events(Api::chat, answer, true), false, [&](const std::string& event) {
    CHECK(event.find("\"prompt_tokens\"") == std::string::npos);  // this client did not ask for the usage
    ++events;
  });
  CHECK(events > 3);
}

TEST_CASE("counts of tokens that make no sense are 0", "[gateway]") {
  const auto tokens = [](const std::string& number) {
    const auto json = tessera::Json::parse(R"({"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"prompt_tokens":)" + number + R"(,"completion_tokens":3}})", {.numbers_as_written = true});
    REQUIRE(json);
    const auto answer = read_answer(Api::completions, *json);
    REQUIRE(answer);
    CHECK(answer->completion_tokens == 3);
    return answer->prompt_tokens;
  };
  CHECK(tokens("12") == 12);
  CHECK(tokens("12.0") == 12);
  CHECK(tokens("9007199254740992") == 9007199254740992);
  for (const char* none : {"-1", "1.5", "1e300", "-1e300", "1e999", "null", "\"7\"", "[]"}) CHECK(tokens(none) == 0);
}

TEST_CASE("answers that are more than a whole text are not plain", "[gateway]") {
  const auto is_plain = [](const std::string& choice) { return read_answer(Api::chat, must_parse("{\"choices\":[" + choice + "]}"))->is_plain; };
  CHECK(is_plain(R"({"message":{"content":"a","tool_calls":[]},"finish_reason":"stop"})"));
  CHECK(is_plain(R"({"message":{"content":"a"},"finish_reason":"length"})"));  // max_tokens is part of the context
  CHECK_FALSE(is_plain(R"({"message":{"content":"a"},"finish_reason":"content_filter"})"));
  CHECK_FALSE(is_plain(R"({"message":{"content":"a","reasoning_content":"hm"},"finish_reason":"stop"})"));
  CHECK_FALSE(is_plain(R"({"message":{"content":null,"tool_calls":[{"id":"1"}]},"finish_reason":"tool_calls"})"));
  EventReader cut(Api::chat);  // a stream without its end
  cut.add("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", true, [](const std::string&) {});
  CHECK_FALSE(cut.answer().is_plain);
}

TEST_CASE("rules choose the tier: the first one whose conditions all hold", "[gateway]") {
  const Router router(parse_rules(R"({"rules": [
      {"name": "maths", "tier": "large", "regex": "\\b(prove|derive)\\b"},
      {"tier": "large", "tools": true},
      {"tier": "small", "keywords": ["Hello", "thanks"], "shorter": 40},
      {"tier": "large", "longer": 1000}]})"), {}, Route::small, Route::adaptive);
  CHECK(route(router, asking("Please PROVE it")) == Route::large);
  CHECK(route(router, asking("improved")) == Route::adaptive);
  CHECK(route(router, asking("hello there")) == Route::small);
  CHECK(route(router, asking("hello there, and now a question of more than forty bytes")) == Route::adaptive);
  CHECK(route(router, asking(std::string(1001, 'a'))) == Route::large);
  CHECK(route(router, chat(R"(,"tools":[{"type":"function"}])")) == Route::large);
  CHECK(router.route(asking("prove"), {}).why == "rule:maths");
  for (const char* broken : {"{}", R"({"rules":[{}]})", R"({"rules":[{"tier":"medium"}]})", R"({"rules":[{"tier":"small","regex":"("}]})", R"({"rules":[{"tier":"small","wrod":1}]})",
                             R"({"rules":[{"tier":"small","longer":-1}]})"}) {
    CHECK_THROWS_AS(parse_rules(broken), Failure);
  }
  CHECK_FALSE(Pattern("(a+)+$").is_in(std::string(50'000, 'a') + "b"));  // the search is given up
}

TEST_CASE("the classifier sends difficult questions to the large model", "[gateway]") {
  const Classifier classifier = Classifier::parse(R"({"weights": [2, -1], "bias": 0.5, "threshold": 0.6})");
  const std::vector<float> hard = {1, 0}, easy = {-1, 1};
  CHECK(classifier.difficulty(hard) == Approx(1 / (1 + std::exp(-2.5))));
  CHECK(classifier.difficulty(std::vector<float>{1}) == 1);
  const Router router({}, classifier, Route::small, Route::adaptive);
  CHECK(router.route(asking("x"), [&] { return std::span<const float>(hard); }).route == Route::large);
  CHECK(router.route(asking("x"), [&] { return std::span<const float>(easy); }).route == Route::small);
  CHECK(route(router, asking("x")) == Route::adaptive);  // no vector
  CHECK_THROWS_AS(Classifier::parse("{}"), Failure);
  CHECK_THROWS_AS(Classifier::parse(R"({"weights": ["1"]})"), Failure);
  CHECK_THROWS_AS(Classifier::parse(R"({"weights": [1], "threshold": 2})"), Failure);
}

TEST_CASE("the shipped classifier's file can be read", "[gateway]") {
  CHECK(Classifier::read_file(TESSERA_SOURCE_DIR "/examples/gateway/difficulty.json").dimensions() == 384);
}

TEST_CASE("an answer's certainty is the mean of its tokens", "[gateway]") {
  const Json answer = must_parse(R"({"choices":[{"logprobs":{"content":[
      {"logprob":-0.5,"top_logprobs":[{"logprob":-0.6931471805599453},{"logprob":-0.6931471805599453}]},
      {"logprob":-1.5,"top_logprobs":[{"logprob":0}]}]}}]})");
  const auto c = certainty_of(Api::chat, answer);
  REQUIRE(c);
  CHECK(c->mean_logprob == Approx(-1));
  REQUIRE(c->mean_entropy);
  CHECK(*c->mean_entropy == Approx(std::log(2.0) / 2));
  CHECK(CertaintyLimits{.least_logprob = -1.1, .most_entropy = {}}.is_met(*c));
  CHECK_FALSE(CertaintyLimits{.least_logprob = -0.9, .most_entropy = {}}.is_met(*c));
  CHECK_FALSE(CertaintyLimits{.least_logprob = -1.1, .most_entropy = 0.3}.is_met(*c));
  CHECK_FALSE(certainty_of(Api::chat, must_parse(R"({"choices":[{"logprobs":null}]})")));
  const auto text = certainty_of(Api::completions, must_parse(R"({"choices":[{"logprobs":{"token_logprobs":[null,-2,-4]}}]})"));
  REQUIRE(text);
  CHECK(text->mean_logprob == Approx(-3));
  Json body = must_parse(R"({"logprobs":false})");
  ask_for_logprobs(Api::chat, body);
  CHECK(body.dump() == R"({"logprobs": true, "top_logprobs": 5})");
  Json shown = must_parse(R"({"choices":[{"logprobs":{"content":[]}}]})");
  remove_logprobs(shown);
  CHECK(shown.dump() == R"({"choices": [{"logprobs": null}]})");
}

TEST_CASE("sentences and code join to the text", "[gateway]") {
  const std::string text = "One. Two is 3.5 m!\n\nThree?\n```\ncode. more.\n```\nFour";
  std::string joined;
  const auto pieces = split_sentences(text);
  for (const auto piece : pieces) joined += piece;
  CHECK(joined == text);
  REQUIRE(pieces.size() == 5);
  CHECK(pieces[1] == "Two is 3.5 m!\n\n");
  CHECK(pieces[3] == "```\ncode. more.\n```\n");
}

TEST_CASE("the most predictable sentences are left out, within the budget", "[gateway]") {
  // Each sentence has 10 tokens; "dull" ones are predictable.
  const Compressor compressor({.keep = 0.7, .least_bytes = 10}, [](const std::vector<std::string_view>& sentences) {
    std::vector<SentenceScore> scores;
    for (const auto sentence : sentences) scores.push_back({.tokens = 10, .surprise = sentence.find("dull") != sentence.npos ? 5.0 : 50.0});
    return std::optional(scores);
  });
  const std::string text = "First dull. News one. A dull one. ```not a fence. News two. Most dull. More news. Also dull. And news. The question, dull?";
  Compressor::Saved saved;
  const std::string shorter = compressor.shorten(text, saved);
  CHECK(shorter == "First dull. News one. ```not a fence. News two. More news. And news. The question, dull?");
  CHECK(saved.before == 100);
  CHECK(saved.after == 70);
  Compressor::Saved none;
  const std::string code = "Begin. x.\n```\ndull dull\n```\nNews here. End.";
  CHECK(compressor.shorten(code, none).find("dull dull") != std::string::npos);
  Json body = must_parse(R"({"messages":[{"role":"system","content":"A dull text. Another dull one. And a dull one. End."},{"role":"user","content":"A text. Another dull one. And a dull one. End."}]})");
  CHECK(compressor.shorten(Api::chat, body).before == 40);
  CHECK(body.dump().find("A dull text. Another dull one.") != std::string::npos);  // the system's message stays whole
  CHECK(body.dump().find("\"A text. End.\"") != std::string::npos);
  Compressor::Saved nothing;
  const Compressor short_only({.keep = 0.1, .least_bytes = 1, .most_bytes = 20}, [](const auto&) -> std::optional<std::vector<SentenceScore>> {
    FAIL("a text that is too long is not scored");
    return std::nullopt;
  });
  CHECK(short_only.shorten("One sentence. And two. And three.", nothing) == "One sentence. And two. And three.");
  const Compressor broken({.least_bytes = 1}, [](const auto&) { return std::optional<std::vector<SentenceScore>>(); });
  CHECK(broken.shorten(text, none) == text);
}

TEST_CASE("addresses of servers", "[gateway]") {
  CHECK(parse_url("http://h").text() == "http://h:80");
  CHECK(parse_url("https://h/v1/").text() == "https://h:443");
  CHECK(parse_url("http://[::1]:8080/base/v1").prefix == "/base");
  CHECK(parse_url("http://[::1]:8080").host == "::1");
  for (const char* wrong : {"", "h:80", "ftp://h", "http://", "http://h:x", "http://u@h", "http://h:123456", "http://h/?a"}) CHECK_THROWS_AS(parse_url(wrong), UsageError);
}

}  // namespace test_gateway_parts
