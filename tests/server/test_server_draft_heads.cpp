// A server with draft heads (--draft-heads): answers are those of a server without, also under a grammar, and wrong uses are refused.
#include <cstdlib>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_draft_heads {

using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

const std::string kData = TESSERA_SOURCE_DIR "/tests/golden/data/";

std::vector<std::string> options(const std::string& kind = {}) {
  std::vector<std::string> all{"--no-log", "-m", kData + "llama-gqa.gguf"};
  if (!kind.empty()) all.insert(all.end(), {"--draft-heads", kData + "heads/llama-gqa/" + kind});
  return all;
}

std::vector<std::string> answers(const RunningServer& server) {
  std::vector<std::string> texts;
  for (const char* more : {R"("temperature": 0)", R"("temperature": 0.9, "seed": 3)", R"("temperature": 0.9, "seed": 3, "n": 3)",
                           R"("temperature": 0.8, "seed": 4, "guided_regex": "[a-f ]{8,20}")"}) {
    const Response response = server.post("/v1/completions", fmt::format(R"({{"prompt": "abc", "max_tokens": 24, "ignore_eos": true, {}}})", more));
    INFO(response.body);
    REQUIRE(response.status == 200);
    texts.push_back(text_at(response.json(), {"choices", "0", "text"}));
  }
  return texts;
}

// Returns the value of a figure of /metrics; -1 if there is none of that name.
double figure(const RunningServer& server, const std::string& name) {
  const std::string text = server.request("GET", "/metrics").body;
  const std::size_t line = text.find("\n" + name), end = text.find('\n', line + 1);
  if (line == text.npos) return -1.0;
  return std::strtod(text.c_str() + text.rfind(' ', end), nullptr);
}

}  // namespace

TEST_CASE("answers are the same with draft heads", "[server][heads]") {
  if (lacks_server()) return;
  const RunningServer plain(options());
  const auto expected = answers(plain);
  CHECK(figure(plain, "vllm:spec_decode_num_draft_tokens_total") == 0.0);
  for (const char* kind : {"medusa", "eagle", "eagle3"}) {
    const RunningServer server(options(kind));
    INFO(kind);
    CHECK(answers(server) == expected);
    CHECK(figure(server, "vllm:spec_decode_num_draft_tokens_total") > 0.0);
    CHECK(figure(server, "vllm:spec_decode_num_accepted_tokens_total") >= 0.0);
  }
}

}  // namespace test_server_draft_heads
