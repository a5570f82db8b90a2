// Errors in the shape of the API that was asked, also those of requests that no endpoint sees: too long, too slow, no HTTP.
#include <memory>
#include <vector>

#include <sys/socket.h>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_errors {

using namespace tessera::tests::server;
using tessera::Json;

namespace {

const std::string kAnthropic[] = {"/v1/messages", "/v1/messages/count_tokens"};
const std::string kBody = R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})", kCount = R"({"messages": [{"role": "user", "content": "Hi"}]})";

const std::string& good(const std::string& path) { return path == kAnthropic[0] ? kBody : kCount; }

// As Anthropic's clients read it: of this type, with a message, and nothing of OpenAI's.
void check_anthropic(const Response& response, int status, const std::string& type) {
  INFO(response.body);
  CHECK(response.status == status);
  REQUIRE(response.status != 0);
  CHECK(response.header("content-type") == "application/json");
  const Json json = response.json();
  CHECK(text_at(json, {"type"}) == "error");
  CHECK(text_at(json, {"error", "type"}) == type);
  CHECK(!text_at(json, {"error", "message"}).empty());
  CHECK(json.find("error")->find("param") == nullptr);
}

void check_openai(const Response& response, int status) {
  INFO(response.body);
  CHECK(response.status == status);
  REQUIRE(response.status != 0);
  const Json json = response.json();
  CHECK(json.find("type") == nullptr);
  CHECK(!text_at(json, {"error", "message"}).empty());
  REQUIRE(json.find("error") != nullptr);
  CHECK(json.find("error")->find("param") != nullptr);
}

Response answer_to(const RunningServer& server, const std::string& bytes) {
  Connection connection(server.port());
  (void)connection.send_raw(bytes);
  return connection.receive_response();
}

}  // namespace

TEST_CASE("a tool of the client's own needs its input_schema, and one of a service does not", "[server]") {
  if (lacks_server()) return;
  const RunningServer server;
  for (const std::string& path : kAnthropic) {
    CAPTURE(path);
    const auto with = [&](const std::string& tool) { return server.post(path, good(path).substr(0, good(path).size() - 1) + R"(, "tools": [{"name": "a", "input_schema": {"type": "object"}}, )" + tool + "]}"); };
    for (const std::string tool : {R"({"name": "b"})", R"({"type": "custom", "name": "b"})", R"({"type": null, "name": "b", "input_schema": null})"}) {
      CAPTURE(tool);
      const Response refused = with(tool);
      check_anthropic(refused, 400, "invalid_request_error");
      CHECK(text_at(refused.json(), {"error", "message"}).starts_with("tools[1].input_schema: "));
    }
    CHECK(with(R"({"type": "web_search_20250305", "name": "web_search"})").status == 200);
  }
}

TEST_CASE("every error on the paths of Anthropic's API is in its shape", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--api-key", "secret", "--rate", "6", "--max-body", "4096", "--max-header", "2048", "--body-time", "1"});
  const HeaderList key{{"x-api-key", "secret"}};
  for (const std::string& path : kAnthropic) {
    CAPTURE(path);
    const std::string post = fmt::format("POST {} HTTP/1.1\r\nHost: h\r\nx-api-key: secret\r\nContent-Type: application/json\r\n", path);
    check_anthropic(answer_to(server, post + "Content-Length: 5000\r\n\r\n"), 413, "request_too_large");
    check_anthropic(answer_to(server, post + "Transfer-Encoding: chunked\r\n\r\n1388\r\n" + std::string(5000, ' ') + "\r\n0\r\n\r\n"), 413, "request_too_large");
    check_anthropic(answer_to(server, post + "Content-Length: 20\r\n\r\n{"), 408, "invalid_request_error");
    check_anthropic(answer_to(server, post + "Transfer-Encoding: chunked\r\n\r\nno size\r\n"), 400, "invalid_request_error");
    check_anthropic(answer_to(server, post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400, "invalid_request_error");
    check_anthropic(answer_to(server, post + "Transfer-Encoding: gzip\r\n\r\n"), 501, "api_error");
    check_anthropic(answer_to(server, post + "X: " + std::string(3000, 'x') + "\r\n\r\n"), 431, "invalid_request_error");
    check_anthropic(answer_to(server, post + "Host: another\r\n\r\n"), 400, "invalid_request_error");
    check_anthropic(server.post(path, good(path)), 401, "authentication_error");
    check_anthropic(server.post(path, good(path), {{"x-api-key", "secre"}}), 401, "authentication_error");
    check_anthropic(server.post(path, good(path), {{"x-api-key", "secret"}, {"Origin", "http://evil.example"}}), 403, "permission_error");
    check_anthropic(server.post(path, good(path), {{"x-api-key", "secret"}, {"Content-Type", "text/plain"}}), 415, "invalid_request_error");
    check_anthropic(server.request("GET", path), 405, "invalid_request_error");
  }
  check_anthropic(server.post("/v1/messages/batches", kBody, key), 404, "not_found_error");
  check_anthropic(server.post("/v1/messages/count_tokens?beta=true", "{", key), 400, "invalid_request_error");
  bool limited = false;
  for (int i = 0; i < 4 && !limited; ++i) {
    const Response response = server.post("/v1/messages/count_tokens", kCount, key);
    limited = response.status == 429;
    if (!limited) continue;
    check_anthropic(response, 429, "rate_limit_error");
    CHECK_FALSE(response.header("retry-after").empty());
  }
  CHECK(limited);
  check_anthropic(server.post("/v1/messages", kBody, key), 429, "rate_limit_error");
  // The neighbours are as before.
  const std::string chat = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";
  check_openai(answer_to(server, chat + "Content-Length: 5000\r\n\r\n"), 413);
  check_openai(answer_to(server, chat + "Content-Length: 20\r\n\r\n{"), 408);
  check_openai(answer_to(server, "\x16\x03\x01 hello\r\n\r\n"), 400);
  check_openai(server.post("/v1/messagesx", kBody, key), 404);
  CHECK(server.terminate() == 0);
}

TEST_CASE("of Anthropic's API too, what finds no place and what comes at the end is told so", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--max-running", "1", "--max-waiting", "1"});
  std::vector<std::unique_ptr<Connection>> all;
  bool full = false;
  for (int i = 0; i < 50 && !full; ++i) {
    all.push_back(std::make_unique<Connection>(server.port()));
    REQUIRE(all.back()->send_request("POST", "/v1/completions", {}, R"({"prompt": "Once", "max_tokens": 900, "ignore_eos": true})"));
    if (i < 3) continue;
    const Response refused = server.post("/v1/messages", kBody);
    full = refused.status != 200;
    if (!full) continue;
    check_anthropic(refused, 429, "rate_limit_error");
    CHECK(std::atoi(refused.header("retry-after").c_str()) >= 1);
  }
  CHECK(full);
  all.clear();
  const auto is_idle = [&] {
    const Json now = server.request("GET", "/status.json").json();
    return number_at(now, {"running"}) == 0 && number_at(now, {"waiting"}) == 0;
  };
  for (int i = 0; i < 2000 && !is_idle(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // A reader who does not read holds up the end.
  Connection deaf(server.port());
  const int small = 2048;
  setsockopt(deaf.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  REQUIRE(deaf.send_request("POST", "/v1/completions", {}, R"({"prompt": "Once", "max_tokens": 900, "stream": true, "ignore_eos": true, "logprobs": 20})"));
  CHECK(deaf.receive_head().status == 200);
  server.signal(SIGTERM);
  for (int i = 0; i < 2000 && server.request("GET", "/health").status != 503; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  check_anthropic(server.post("/v1/messages", kBody), 503, "overloaded_error");
  deaf.drop();
  CHECK(server.wait() == 0);
}

}  // namespace test_server_errors
