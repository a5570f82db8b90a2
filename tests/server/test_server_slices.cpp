// Texts to embed and prompts to score beside requests: in slices between two steps, of as many rows as --step-ms leaves.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_slices {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

struct Counts {
  std::int64_t slices = 0, rows = 0;
};

std::int64_t metric(const std::string& text, const std::string& name) {
  const std::size_t line = text.find("\n" + name + "{");
  REQUIRE(line != std::string::npos);
  return std::atoll(text.c_str() + text.find("} ", line) + 2);
}

Counts counts(const RunningServer& server) {
  const std::string text = server.request("GET", "/metrics").body;
  return {.slices = metric(text, "tessera:slices_total"), .rows = metric(text, "tessera:slice_rows_total")};
}

// What a request has added.
Counts added(const RunningServer& server, const std::string& path, const std::string& body) {
  const Counts before = counts(server);
  const Response response = server.post(path, body);
  INFO(path << ": " << response.body.substr(0, 400));
  CHECK(response.status == 200);
  const Counts after = counts(server);
  return {.slices = after.slices - before.slices, .rows = after.rows - before.rows};
}

std::string ids(int n) {
  std::string text = "65";
  for (int i = 1; i < n; ++i) text += fmt::format(", {}", 65 + i % 20);
  return text;
}

}  // namespace

TEST_CASE("while a request is there, texts to embed and prompts to score are computed in small slices", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--step-ms", "0.1", "--max-running", "1", "-t", "1"});  // no slice is as quick
  const std::string embed = fmt::format(R"({{"input": [[{}], [{}]]}})", ids(400), ids(20));
  const std::string score = fmt::format(R"({{"prompt": [{}], "echo": true, "logprobs": 1, "max_tokens": 0}})", ids(401));
  const Counts embedded_alone = added(server, "/v1/embeddings", embed), scored_alone = added(server, "/v1/completions", score);
  CHECK(embedded_alone.rows == 420);
  CHECK(embedded_alone.slices == 2 + 1);  // up to 256 rows at once
  CHECK(scored_alone.rows == 400);
  CHECK(scored_alone.slices == 2);

  // Answers of 4,000 steps, one after the other.
  std::vector<std::unique_ptr<Connection>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(std::make_unique<Connection>(server.port()));
    REQUIRE(readers.back()->send_request("POST", "/v1/completions", {}, R"({"prompt": "a", "max_tokens": 500, "ignore_eos": true, "stream": true})"));
  }
  const auto runs = [&] { return number_at(server.request("GET", "/status.json").json(), {"running"}) == 1; };
  for (int i = 0; i < 5000 && !runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const Counts embedded = added(server, "/v1/embeddings", embed), scored = added(server, "/v1/completions", score);
  CHECK(runs());
  CHECK(embedded.rows == 420);
  CHECK(embedded.slices == 25 + 2);  // 16 rows at once
  CHECK(scored.rows == 400);
  CHECK(scored.slices == 25);
  for (const auto& reader : readers) reader->drop();
  CHECK(server.terminate() == 0);
}

}  // namespace test_server_slices
