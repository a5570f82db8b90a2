// The gateway over HTTP, in front of servers that are made up here.
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "api_error.hpp"
#include "catch.hpp"
#include "gateway.hpp"
#include "http_server.hpp"
#include "server/http_client.hpp"

namespace test_gateway_http {

using namespace gateway;
using server::parse_url;
using server::UpstreamLimits;
using tessera::Json;
using tessera::tests::server::Connection;
using tessera::tests::server::Response;

namespace {

// A server of OpenAI's API. It answers "NAME: TEXT"; a text with "hard" is answered with low log-probabilities, "busy" with 429, "slow"
// not before the client has gone, "broken" with what is no JSON, "wait" after a tenth of a second.
class FakeModel {
 public:
  explicit FakeModel(std::string name) : name_(std::move(name)), server_({.port = 0}) {
    server_.start([this](server::HttpRequest request, server::HttpReplyPtr reply) { handle(request, reply); }, server::refusal);
  }
  ~FakeModel() {
    slow_.reset();
    (void)server_.close(std::chrono::seconds(5));
  }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }

  std::atomic<int> asked{0};
  std::atomic<bool> slow_client_gone{false};
  std::string last_body, last_authorization;  // read when nothing is asked

 private:
  void handle(const server::HttpRequest& request, const server::HttpReplyPtr& reply) {
    if (request.path == "/v1/models") return reply->send({.body = R"({"object":"list","data":[{"id":"fake"}]})"});
    ++asked;
    last_body = request.body;
    last_authorization = request.header("authorization");
    const Question q = read_question(request.path == path_of(Api::chat) ? Api::chat : Api::completions, request.body, {});
    const auto says = [&](const char* word) { return q.text.find(word) != std::string::npos; };
    if (says("busy")) return reply->send({.status = 429, .body = R"({"error":{"message":"busy"}})", .headers = {{"Retry-After", "7"}}});
    if (says("broken")) return reply->send({.body = "<html>"});
    if (says("slow")) {
      reply->on_change([this, weak = std::weak_ptr(reply)] {
        const auto still = weak.lock();
        if (still == nullptr || still->gone()) slow_client_gone = true;
      });
      slow_ = reply;
      return;
    }
    if (says("wait")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const Answer answer{.text = name_ + ": " + q.text, .model = name_, .prompt_tokens = 10, .completion_tokens = 5, .is_plain = true};
    if (q.streams) {
      reply->begin_stream({.body = to_events(q.api, answer, q.wants_usage), .type = "text/event-stream"}, {});
      return reply->end_stream();
    }
    Json object = *Json::parse(to_object(q.api, answer));
    if (q.wants_logprobs) {
      Json choice = object.find("choices")->elements()->front();
      choice.set("logprobs", *Json::parse(says("hard") ? R"({"content":[{"logprob":-3.0}]})" : R"({"content":[{"logprob":-0.1}]})"));
      object.set("choices", Json(Json::Array{choice}));
    }
    reply->send({.body = object.dump()});
  }

  std::string name_;
  server::HttpReplyPtr slow_;
  server::HttpServer server_;
};

// Vectors by words: texts with the same words have the same vector, in any order.
std::vector<float> embed(std::string_view text) {
  std::vector<float> vector(64);
  std::string word;
  const auto take = [&] {
    if (!word.empty()) vector[std::hash<std::string>()(word) % vector.size()] += 1;
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) word += static_cast<char>(std::tolower(c));
    else take();
  }
  take();
  float sum = 0;
  for (const float x : vector) sum += x * x;
  for (float& x : vector) x /= std::max(std::sqrt(sum), 1e-6f);
  return vector;
}

struct Setting {
  Route route = Route::large;
  double check = 0;
  server::Keys keys{};
  std::string tenant_header{};
  std::vector<Pattern> never{};
  UpstreamLimits upstream{};
  std::uint64_t body_bytes = 1 << 20;
};

// Two made-up servers and a gateway in front of them.
class Running {
 public:
  explicit Running(Setting setting = {})
      : never_(std::move(setting.never)), router_({}, {}, Route::adaptive, setting.route), large_("large", "big", {upstream(large_model, setting)}, 1),
        small_("small", "", {upstream(small_model, setting)}, 0),
        quality_({.share = setting.check, .agreement = 0.9}, large_, embed, &cache, figures, ending_.get_token()),
        parts_{.large = large_, .small = &small_, .embed = embed, .cache = &cache, .never_cached = never_, .limits = {}, .router = router_,
               .certainty = {.least_logprob = -1, .most_entropy = {}}, .compressor = nullptr, .quality = &quality_, .flights = flights_, .figures = figures},
        gateway_({.keys = setting.keys, .tenant_header = setting.tenant_header, .at_once = 8, .body_bytes = setting.body_bytes, .logs_requests = false}, parts_), http_({.port = 0}) {
    http_.start([this](server::HttpRequest request, server::HttpReplyPtr reply) { gateway_.handle(std::move(request), std::move(reply)); }, server::refusal);
  }
  ~Running() {
    gateway_.cut();
    ending_.request_stop();
    CHECK(http_.close(std::chrono::seconds(10)));
  }
  [[nodiscard]] std::uint16_t port() const { return http_.port(); }
  Response post(const std::string& body, const tessera::tests::server::HeaderList& headers = {}, const char* path = "/v1/chat/completions") const {
    return Connection(port()).request("POST", path, headers, body);
  }
  Response ask(const std::string& text, const tessera::tests::server::HeaderList& headers = {}, const std::string& more = "") const {
    return post("{\"model\":\"auto\",\"messages\":[{\"role\":\"user\",\"content\":" + Json(text).dump() + "}]" + more + "}", headers);
  }
  [[nodiscard]] std::string metrics() const { return Connection(port()).request("GET", "/metrics").body; }

  FakeModel large_model{"L"}, small_model{"S"};
  Figures figures;
  SemanticCache cache{{.threshold = 0.95}};

 private:
  static Upstream upstream(const FakeModel& model, const Setting& setting) {
    return {parse_url(fmt::format("http://127.0.0.1:{}/v1", model.port())), "", setting.upstream};
  }

  std::stop_source ending_;
  std::vector<Pattern> never_;
  Router router_;
  Tier large_, small_;
  Flights flights_;
  Quality quality_;
  Parts parts_;
  Gateway gateway_;
  server::HttpServer http_;
};

std::string text_of(const Response& response) { return tessera::tests::server::text_at(response.json(), {"choices", "0", "message", "content"}); }

}  // namespace

TEST_CASE("a question that was answered before is answered from the cache, as an object and as a stream", "[gateway]") {
  Running running;
  const Response first = running.ask("What is a cat?");
  CHECK(first.status == 200);
  CHECK(first.header("x-cache").starts_with("miss"));
  CHECK(first.header("x-tier") == "large");
  CHECK(text_of(first) == "L: What is a cat?");
  CHECK(running.large_model.last_body.find("\"model\": \"big\"") != std::string::npos);
  const Response again = running.ask("is a cat WHAT");
  CHECK(again.header("x-cache").starts_with("hit; similarity=1.0"));
  CHECK(text_of(again) == "L: What is a cat?");
  Connection connection(running.port());
  connection.send_request("POST", "/v1/chat/completions", {}, R"({"model":"auto","stream":true,"messages":[{"role":"user","content":"What is a cat?"}]})");
  CHECK(connection.receive_head().header("x-cache").starts_with("hit"));
  std::string streamed;
  const auto events = connection.all_events();
  REQUIRE(events.size() > 2);
  CHECK(events.back().data == "[DONE]");
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const Json content = tessera::tests::server::at(events[i].json(), {"choices", "0", "delta", "content"});
    if (content.string() != nullptr) streamed += *content.string();
  }
  CHECK(streamed == "L: What is a cat?");
  CHECK(running.large_model.asked == 1);
  const std::string metrics = running.metrics();
  CHECK_THAT(metrics, Catch::Contains("gateway_cache_hits_total 2") && Catch::Contains("gateway_similarity_bucket{le=\"+Inf\"} 2") && Catch::Contains("gateway_answers_total{tier=\"large\"} 1"));
}

TEST_CASE("a stream passes through the gateway and is cached", "[gateway]") {
  Running running;
  for (const bool is_hit : {false, true}) {
    const Response streamed = running.ask("stream me", {}, R"(,"stream":true)");
    CHECK(streamed.header("x-cache").starts_with(is_hit ? "hit" : "miss"));
    CHECK_THAT(streamed.body, Catch::Contains("L: stream me") && Catch::Contains("[DONE]"));
    CHECK(streamed.body.find("prompt_tokens") == std::string::npos);  // the usage was asked for by the gateway alone
  }
  CHECK(running.large_model.asked == 1);
  CHECK_THAT(running.metrics(), Catch::Contains("gateway_tokens_total{tier=\"large\",kind=\"answer\"} 5"));
  CHECK_THAT(running.post(R"({"prompt":"abc"})", {}, "/v1/completions").body, Catch::Contains("L: abc"));
}

TEST_CASE("no answer crosses tenants: keys, clients without known keys, and a proxy's header", "[gateway]") {
  const auto is_hit = [](const Running& running, const tessera::tests::server::HeaderList& headers) { return running.ask("a secret", headers).header("x-cache").starts_with("hit"); };
  Running open({.tenant_header = "x-team"});
  CHECK_FALSE(is_hit(open, {{"Authorization", "Bearer one"}}));
  CHECK(is_hit(open, {{"Authorization", "Bearer one"}}));
  CHECK_FALSE(is_hit(open, {{"Authorization", "Bearer two"}}));
  CHECK_FALSE(is_hit(open, {}));
  CHECK_FALSE(is_hit(open, {{"Authorization", "Bearer one"}, {"X-Team", "red"}}));
  CHECK(open.large_model.last_authorization == "Bearer one");  // sent on
  CHECK(open.ask("x", {{"Origin", "https://evil.example"}}).status == 403);
  server::Keys keys;
  keys.add("acme k1");
  keys.add("zen k2");
  Running closed({.keys = keys});
  CHECK(closed.ask("a secret").status == 401);
  CHECK_FALSE(is_hit(closed, {{"Authorization", "Bearer k1"}}));
  CHECK_FALSE(is_hit(closed, {{"Authorization", "Bearer k2"}}));
  CHECK(is_hit(closed, {{"x-api-key", "k1"}}));
  CHECK(closed.large_model.last_authorization.empty());  // the gateway's keys are not sent on
}

TEST_CASE("questions that must not be cached are not", "[gateway]") {
  Running running({.never = {Pattern("today|now")}});
  for (int i = 0; i < 2; ++i) {
    CHECK(running.ask("What is the time now?").header("x-cache") == "bypass; reason=pattern");
    CHECK(running.ask("a", {}, R"(,"tools":[{"type":"function"}])").header("x-cache") == "bypass; reason=tools");
    CHECK(running.ask("b", {{"Cache-Control", "no-store"}}).header("x-cache") == "bypass; reason=no-store");
    CHECK(running.ask("c", {{"Cache-Control", "no-cache"}}).header("x-cache") == "refresh");
  }
  CHECK(running.large_model.asked == 8);
  CHECK(running.ask("c").header("x-cache").starts_with("hit"));  // a refreshed answer is stored
}

TEST_CASE("an uncertain answer of the small model is replaced by the large model's", "[gateway]") {
  Running running({.route = Route::adaptive});
  const Response easy = running.ask("easy");
  CHECK(text_of(easy) == "S: easy");
  CHECK(easy.header("x-tier") == "small");
  CHECK(tessera::tests::server::at(easy.json(), {"choices", "0", "logprobs"}).is_null());
  const Response hard = running.ask("hard");
  CHECK(text_of(hard) == "L: hard");
  CHECK(hard.header("x-tier") == "small,large");
  const Response streamed = running.ask("easy too", {}, R"(,"stream":true)");
  CHECK_THAT(streamed.body, Catch::Contains("S: easy too") && Catch::Contains("[DONE]"));
  CHECK_THAT(running.ask("hard too", {}, R"(,"stream":true)").body, Catch::Contains("L: hard too"));
  const Response busy = running.ask("busy");  // both are
  CHECK(busy.status == 429);
  CHECK(busy.header("retry-after") == "7");
  CHECK_THAT(running.metrics(), Catch::Contains("gateway_escalations_total{why=\"uncertain\"} 2") && Catch::Contains("gateway_escalations_total{why=\"failed\"} 1"));
}

TEST_CASE("failures of servers are errors of the API", "[gateway]") {
  Running running({.upstream = {.answer_time = std::chrono::milliseconds(300)}});
  CHECK(running.ask("busy").status == 429);
  CHECK(running.ask("busy", {}, R"(,"stream":true)").header("retry-after") == "7");
  CHECK(running.ask("broken").status == 502);
  CHECK(running.ask("broken", {}, R"(,"stream":true)").status == 502);
  const Response late = running.ask("slow");
  CHECK(late.status == 504);
  CHECK_THAT(late.body, Catch::Contains("did not answer in time"));
  CHECK(running.post("{").status == 400);
  CHECK(running.post("{}", {}, "/v1/nothing").status == 404);
  CHECK(Connection(running.port()).request("GET", "/v1/chat/completions").status == 405);
  CHECK(Connection(running.port()).request("GET", "/health").status == 200);
  CHECK_THAT(Connection(running.port()).request("GET", "/v1/models").body, Catch::Contains("fake"));
  const Tier none("large", "", {Upstream(parse_url("http://127.0.0.1:1"), "", {})}, 1);
  CHECK_THROWS_AS((void)none.ask("GET", "/", "", "", {}), UpstreamError);
  const Tier some("large", "", {Upstream(parse_url("http://127.0.0.1:1"), "", {}), Upstream(parse_url(fmt::format("http://127.0.0.1:{}", running.large_model.port())), "", {})}, 1);
  for (int i = 0; i < 3; ++i) CHECK(some.ask("GET", "/v1/models", "", "", {}).status == 200);  // the other server answers
}

TEST_CASE("a client that leaves ends the request to the server", "[gateway]") {
  Running running;
  {
    Connection connection(running.port());
    connection.send_request("POST", "/v1/chat/completions", {}, R"({"messages":[{"role":"user","content":"slow"}]})");
    for (int i = 0; i < 200 && running.large_model.asked == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    connection.drop(true);
  }
  for (int i = 0; i < 300 && !running.large_model.slow_client_gone; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(running.large_model.slow_client_gone);
  CHECK(running.ask("and then").status == 200);
}

TEST_CASE("bodies of waiting requests are limited, and their memory is free again when they end", "[gateway]") {
  Running running({.body_bytes = 10'000});
  const std::string padding(8000, 'x');
  const std::string large = R"({"user":")" + padding + R"(","messages":[{"role":"user","content":"slow"}]})";
  const std::string other = R"({"user":")" + padding + R"(","messages":[{"role":"user","content":"hello"}]})";
  {
    Connection held(running.port());
    REQUIRE(held.send_request("POST", "/v1/chat/completions", {}, large));
    for (int i = 0; i < 1000 && running.large_model.asked == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Response refused = running.post(other);
    CHECK(refused.status == 429);
    CHECK(!refused.header("retry-after").empty());
    CHECK_THAT(refused.body, Catch::Contains("memory"));
    CHECK(running.ask("hello").status == 200);  // a small one has room
  }
  Response answer;
  for (int i = 0; i < 1000 && answer.status != 200; ++i) {
    answer = running.post(other);
    if (answer.status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(answer.status == 200);
}

TEST_CASE("identical questions at the same time are asked once", "[gateway]") {
  Running running;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Connection>> connections;  // made here, as they check with Catch, which is for one thread
  std::atomic<int> right{0};
  for (int i = 0; i < 5; ++i) {
    connections.push_back(std::make_unique<Connection>(running.port()));
    const std::string body = fmt::format(R"({{"stream":{},"messages":[{{"role":"user","content":"wait for it"}}]}})", i % 2 == 1);
    threads.emplace_back([&right, body, connection = connections.back().get()] {
      const Response response = connection->request("POST", "/v1/chat/completions", {}, body);
      right += response.status == 200 && response.body.find("L: wait for it") != std::string::npos;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 5);
  CHECK(running.large_model.asked == 1);
}

TEST_CASE("cached and small answers are compared with the large model's; wrong ones leave the cache", "[gateway]") {
  Running running({.route = Route::small, .check = 1});
  CHECK(text_of(running.ask("one two three four five six seven eight nine ten")) == "S: one two three four five six seven eight nine ten");
  const auto has = [&](const char* line) {
    for (int i = 0; i < 500; ++i) {
      if (running.metrics().find(line) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  // "S: a b ..." and "L: a b ..." differ in one of eleven words.
  CHECK(has("gateway_comparisons_total{source=\"small\",wrong=\"0\"} 1"));
  CHECK(text_of(running.ask("x")) == "S: x");
  CHECK(has("gateway_comparisons_total{source=\"small\",wrong=\"1\"} 1"));
  CHECK(running.ask("x").header("x-cache").starts_with("hit"));
  CHECK(has("gateway_comparisons_total{source=\"cache\",wrong=\"1\"} 1"));
  CHECK(has("gateway_cache_forgotten_total 1"));
  CHECK(running.ask("x").header("x-cache").starts_with("miss"));
}

}  // namespace test_gateway_http
