// A server with an encoder: vectors of texts, and scores of documents.
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include <tessera/json/json.hpp>

#include "engine/models.hpp"
#include "server/http_client.hpp"

namespace test_server_encoders {

using namespace tessera;
using namespace tessera::test;
using tests::server::RunningServer;

namespace {

std::string folder(std::string_view name) { return (golden_dir() / "encoders" / name).string(); }

Json answer(const RunningServer& server, std::string_view path, std::string_view body, int status = 200) {
  const auto response = server.post(path, body);
  INFO(response.body);
  REQUIRE(response.status == status);
  return must(Json::parse(response.body));
}

}  // namespace

TEST_CASE("a server with a cross-encoder ranks documents, and embeds texts", "[server]") {
  const RunningServer server({"-m", folder("bert-rank")});
  const Json ranked = answer(server, "/v1/rerank", R"({"query": "red bird", "documents": ["water", {"text": "the red bird eats bread and fish"}], "return_documents": true})");
  const auto expected = read_floats(golden_dir() / "encoders" / "bert-rank" / "scores.f32");  // pairs 3 and 4 of pairs.txt
  const Json::Array& results = *ranked.find("results")->elements();
  REQUIRE(results.size() == 2);
  double before = 1e9;
  for (const Json& result : results) {
    const std::int64_t index = *result.find("index")->integer();
    const double score = *result.find("relevance_score")->number();
    CHECK(score == Approx(expected[index == 0 ? 3 : 2]).margin(1e-3));
    CHECK(score <= before);
    CHECK(*result.find("document")->find("text")->string() == (index == 0 ? "water" : "the red bird eats bread and fish"));
    before = score;
  }
  CHECK(answer(server, "/v1/rerank", R"({"query": "x", "documents": ["a", "b"], "top_n": 1})").find("results")->elements()->size() == 1);
  CHECK(*answer(server, "/v1/rerank", R"({"query": "x", "documents": []})", 400).find("error")->find("param")->string() == "documents");
  CHECK(*answer(server, "/v1/rerank", R"({"documents": ["a"]})", 400).find("error")->find("param")->string() == "query");

  const Json vectors = answer(server, "/v1/embeddings", R"({"input": ["the cat sleeps", "the dog", "the cat sleeps"], "pooling": "mean", "dimensions": 8})");
  const Json::Array& data = *vectors.find("data")->elements();
  REQUIRE(data.size() == 3);
  CHECK(data[0].find("embedding")->elements()->size() == 8);
  CHECK(data[0].find("embedding")->dump() == data[2].find("embedding")->dump());
  CHECK(data[0].find("embedding")->dump() != data[1].find("embedding")->dump());
  CHECK(*answer(server, "/v1/embeddings", R"({"input": "a", "dimensions": 33})", 400).find("error")->find("param")->string() == "dimensions");
}

TEST_CASE("a server refuses to write with an encoder, and to rank with a model that writes", "[server]") {
  const RunningServer encoder({"-m", folder("bert-rank")});
  const Json refused = answer(encoder, "/v1/completions", R"({"prompt": "the cat", "max_tokens": 4})", 400);
  CHECK_THAT(*refused.find("error")->find("message")->string(), Catch::Contains("embeddings"));
  answer(encoder, "/v1/embeddings", R"({"input": "the cat"})");  // it goes on
  const RunningServer writer;
  const Json none = answer(writer, "/v1/rerank", R"({"query": "a", "documents": ["b"]})", 400);
  CHECK_THAT(*none.find("error")->find("message")->string(), Catch::Contains("yes"));
}

}  // namespace test_server_encoders
