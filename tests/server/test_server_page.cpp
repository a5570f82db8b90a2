// What the page reads of the server beside answers: usage with each piece, what a model can do.
#include "server/http_client.hpp"

namespace test_server_page {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

std::vector<ServerEvent> events_of(const RunningServer& server, const std::string& body) {
  Connection connection(server.port());
  connection.send_request("POST", "/v1/chat/completions", {}, body);
  REQUIRE(connection.receive_head().status == 200);
  return connection.all_events();
}

}  // namespace

TEST_CASE("continuous_usage_stats: each piece tells the tokens so far", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  const std::string body = R"({"messages": [{"role": "user", "content": "Once upon a time"}], "temperature": 0, "max_tokens": 6, "stream": true, "stream_options": )";
  const auto events = events_of(server, body + R"({"include_usage": true, "continuous_usage_stats": true}})");
  REQUIRE(events.size() >= 4);
  const Json last = events[events.size() - 2].json();
  CHECK(number_at(last, {"usage", "completion_tokens"}) == 6);
  std::int64_t before = 0;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const Json piece = events[i].json();
    CHECK(number_at(piece, {"usage", "prompt_tokens"}) == number_at(last, {"usage", "prompt_tokens"}));
    const std::int64_t now = number_at(piece, {"usage", "completion_tokens"});
    CHECK(now >= before);
    CHECK(number_at(piece, {"usage", "total_tokens"}) == number_at(piece, {"usage", "prompt_tokens"}) + now);
    before = now;
  }
  CHECK(number_at(events.front().json(), {"usage", "completion_tokens"}) == 0);
  for (const auto& event : events_of(server, body + R"({"include_usage": true}})")) {
    if (event.data != "[DONE]" && at(event.json(), {"choices"}) != Json::array()) CHECK(at(event.json(), {"usage"}).is_null());
  }
}

TEST_CASE("a model says what it was made for", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  CHECK(text_at(server.request("GET", "/v1/models").json(), {"data", "0", "meta", "capabilities", "0"}) == "completion");
}

}  // namespace test_server_page
