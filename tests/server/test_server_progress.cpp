// Streams say how much of a prompt is computed: as events if the client asks for them, else as comments.
#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_progress {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

struct Progress {
  std::int64_t total, cache, processed, time_ms;
};

Progress progress_of(const Json& json) {
  REQUIRE(json.members() != nullptr);
  CHECK(json.members()->size() == 4);
  return {number_at(json, {"total"}), number_at(json, {"cache"}), number_at(json, {"processed"}), number_at(json, {"time_ms"})};
}

// What a stream says in its events and in its comments, in order.
struct Told {
  std::vector<Progress> events{}, comments{};
  std::vector<std::string> types{};  // of the events with progress
  bool begins_with_it = true;        // no text came before the last of them
};

Told told_by(const std::string& body) {
  Told told;
  bool has_text = false;
  for (std::size_t at_line = 0; at_line < body.size();) {
    const std::size_t end = std::min(body.find('\n', at_line), body.size());
    const std::string line = body.substr(at_line, end - at_line);
    at_line = end + 1;
    constexpr std::string_view kComment = ": prompt_progress ";
    if (line.starts_with(kComment)) told.comments.push_back(progress_of(*Json::parse(line.substr(kComment.size()))));
    if (!line.starts_with("data: {")) continue;
    const Json data = *Json::parse(line.substr(6));
    if (const Json* progress = data.find("prompt_progress")) {
      told.events.push_back(progress_of(*progress));
      told.types.push_back(text_at(data, {"type"}));
      told.begins_with_it = told.begins_with_it && !has_text;
    } else {
      const std::string type = text_at(data, {"type"});
      has_text = has_text || type == "content_block_delta" || type == "response.output_text.delta" ||
                 (!at(data, {"choices", "0", "text"}).is_null() && !text_at(data, {"choices", "0", "text"}).empty()) ||
                 (!at(data, {"choices", "0", "delta", "content"}).is_null() && !text_at(data, {"choices", "0", "delta", "content"}).empty());
    }
  }
  return told;
}

struct Asked {
  const char* path;
  std::string body;  // without its end
  const char* type;
};

// The prompt of each is another one, so that nothing of it is there already.
std::vector<Asked> asked(const std::string& words) {
  const std::string turns = R"([{"role": "user", "content": ")" + words + R"("}])";
  return {{"/v1/chat/completions", R"({"stream": true, "max_tokens": 3, "messages": )" + turns, "null"},
          {"/v1/completions", R"({"stream": true, "max_tokens": 3, "prompt": "one )" + words + "\"", "null"},
          {"/v1/responses", R"({"stream": true, "max_output_tokens": 3, "input": "two )" + words + "\"", "response.in_progress"},
          {"/v1/messages", R"({"stream": true, "max_tokens": 3, "messages": [{"role": "user", "content": "three )" + words + R"("}])", "ping"}};
}

std::string words(int from, int count) {
  std::string text;
  for (int i = from; i < from + count; ++i) text += fmt::format("cat{} ", i);
  return text;
}

}  // namespace

TEST_CASE("return_progress has the events of every API's streams say how much of the prompt is computed", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  for (const Asked& one : asked(words(0, 60))) {
    CAPTURE(one.path);
    const Response response = server.post(one.path, one.body + R"(, "return_progress": true})");
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(response.header("x-tessera-ignored").empty());
    const Told told = told_by(response.body);
    CHECK(told.comments.empty());
    CHECK(told.begins_with_it);
    REQUIRE_FALSE(told.events.empty());
    for (std::size_t i = 0; i < told.events.size(); ++i) {
      const Progress& now = told.events[i];
      CHECK(told.types[i] == one.type);
      CHECK(now.total > 60);
      CHECK(now.total == told.events.back().total);
      CHECK((now.cache >= 0 && now.cache <= now.processed && now.processed <= now.total));
      CHECK(now.time_ms >= 0);
      if (i > 0) CHECK(now.processed > told.events[i - 1].processed);
    }
    CHECK(told.events.back().processed == told.events.back().total);
    // Asked once more, most of it is there.
    const Told again = told_by(server.post(one.path, one.body + R"(, "return_progress": true})").body);
    REQUIRE_FALSE(again.events.empty());
    CHECK(again.events.back().cache > told.events.back().cache);
    // Not asked for: no events, and no field without a stream.
    CHECK(told_by(server.post(one.path, one.body + "}").body).events.empty());
    CHECK(server.post(one.path, one.body + R"(, "return_progress": "yes"})").status == 400);
  }
  const Response whole = server.post("/v1/completions", R"({"prompt": "a", "max_tokens": 1, "return_progress": true})");
  CHECK(whole.status == 200);
  CHECK(whole.body.find("prompt_progress") == std::string::npos);
}

// Beside an answer that is being written a long prompt comes in parts, each as long as --step-ms says.
TEST_CASE("a stream has comments while a long prompt is computed, and none for a short one", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "--threads", "1", "--step-ms", "0.1"});
  std::size_t with_comments = 0;
  for (int round = 0; round < 3 && with_comments == 0; ++round) {
    Connection neighbour(server.port());
    neighbour.send_request("POST", "/v1/completions", {}, R"({"prompt": "Once", "max_tokens": 490, "ignore_eos": true, "stream": true, "n": 4})");
    REQUIRE(neighbour.receive_head().status == 200);
    REQUIRE(neighbour.next_event());
    for (const Asked& one : asked(words(100 * round, 70))) {
      const Response response = server.post(one.path, one.body + "}");
      INFO(one.path << ": " << response.body);
      REQUIRE(response.status == 200);
      const Told told = told_by(response.body);
      CHECK(told.events.empty());
      with_comments += told.comments.empty() ? 0 : 1;
      for (const Progress& now : told.comments) CHECK((now.processed > 0 && now.processed < now.total));
    }
  }
  CHECK(with_comments > 0);
  CHECK(told_by(server.post("/v1/completions", R"({"prompt": "a short one", "max_tokens": 2, "stream": true})").body).comments.empty());
}

}  // namespace test_server_progress
