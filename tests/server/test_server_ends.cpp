// Targets as HTTP allows them, names that are not this machine's, and what the log says of answers that were cut.
#include <regex>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_ends {

using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

int status_of(const RunningServer& server, const std::string& bytes) {
  Connection connection(server.port());
  (void)connection.send_raw(bytes);
  return connection.receive_response().status;
}

// The first line of the log with this in it, once it is there.
std::string logged(const RunningServer& server, const std::string& part) {
  for (int i = 0; i < 1000; ++i) {
    const std::string log = server.log();
    if (const std::size_t at = log.find(part); at != std::string::npos && log.find('\n', at) != std::string::npos) {
      const std::size_t begin = log.rfind('\n', at) + 1;
      return log.substr(begin, log.find('\n', at) - begin);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

const std::string kLong = R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true, "logprobs": 20})";

}  // namespace

TEST_CASE("the absolute form of a target, and an empty line in front of a request", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  CHECK(status_of(server, "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200);
  CHECK(status_of(server, "GET HTTP://localhost:8080/v1/models?x=1 HTTP/1.1\r\nHost: elsewhere\r\n\r\n") == 200);
  CHECK(status_of(server, "GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200);
  CHECK(status_of(server, "GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n") == 403);
  CHECK(status_of(server, "GET http:///v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n") == 400);
  CHECK(status_of(server, "\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200);
  CHECK(status_of(server, "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n") == 400);
  Connection connection(server.port());
  REQUIRE(connection.send_raw("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n\r"));
  CHECK(connection.receive_response().status == 200);
  REQUIRE(connection.send_raw("\nGET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  CHECK(connection.receive_response().status == 200);
}

TEST_CASE("of a server for this machine alone, a GET under another name is refused as a page's POST is", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "--cors", "https://app.example"});
  const auto get = [&](const std::string& path, const std::string& host) { return server.request("GET", path, {{"Host", host}}).status; };
  for (const char* path : {"/v1/models", "/metrics", "/status.json", "/", "/status", "/openapi.json"}) {
    CAPTURE(path);
    CHECK(get(path, "rebound.example") == 403);
    for (const char* host : {"localhost:1234", "127.0.0.1", "127.9.9.9:80", "[::1]:80", "app.example"}) CHECK(get(path, host) == 200);
  }
  CHECK(get("/health", "probe") == 200);
  CHECK(get("/live", "probe") == 200);
  const RunningServer open({"--no-log", "--api-key", "k"});
  CHECK(open.request("GET", "/v1/models", {{"Host", "rebound.example"}, {"Authorization", "Bearer k"}}).status == 200);
}

TEST_CASE("the log tells what was read and written of an answer that its client cut", "[server]") {
  if (lacks_server()) return;
  const RunningServer server;
  Connection connection(server.port());
  connection.send_request("POST", "/v1/completions", {}, kLong);
  REQUIRE(connection.receive_head().status == 200);
  for (int i = 0; i < 10; ++i) REQUIRE(connection.next_event());
  connection.drop();
  const std::string line = logged(server, "/v1/completions 499");
  INFO(line);
  std::smatch found;
  REQUIRE(std::regex_search(line, found, std::regex(R"( (\d+) read \(\d+ kept\) (\d+) written, first 0\.\d+ s)")));
  CHECK(std::stoi(found[1]) == 2);
  CHECK(std::stoi(found[2]) >= 10);
}

TEST_CASE("answers that the end of the server cuts are logged as that, and counted in the last line", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--drain-time", "0"});
  Connection connection(server.port());
  const int small = 2048;  // and nobody reads: it is still under way at the end
  setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  connection.send_request("POST", "/v1/completions", {}, kLong);
  REQUIRE(connection.receive_head().status == 200);
  REQUIRE(connection.next_event());
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  const std::string line = logged(server, "/v1/completions 503"), last = logged(server, "served ");
  INFO(line << "\n" << last);
  std::smatch found;
  REQUIRE(std::regex_search(line, found, std::regex(R"( 2 read \(\d+ kept\) (\d+) written)")));
  CHECK(std::stoi(found[1]) >= 1);
  CHECK(last.starts_with("served 0 requests, cut 1, "));
}

}  // namespace test_server_ends
