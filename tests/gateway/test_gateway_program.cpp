// The models inside the gateway, and tessera-gateway as a user starts it.
#include <numeric>

#include "cli/program.hpp"
#include "failure.hpp"
#include "requests/compressor.hpp"
#include "tiers/local_models.hpp"

namespace test_gateway_program {

using namespace gateway;
using namespace tessera::tests::cli;

namespace {

const std::string kGateway = TESSERA_BIN_DIR "/tessera-gateway";
const std::string kOwnStories = TESSERA_SOURCE_DIR "/models/tessera-stories.gguf";

}  // namespace

TEST_CASE("an encoder gives vectors of length 1, and none for a text that is too long", "[gateway]") {
  const Embedder embedder(kGolden + "encoders/bert-rank", {.threads = 1});
  const auto vector = embedder.vector_of("the cat sleeps");
  REQUIRE(vector.size() == embedder.dimensions());
  CHECK(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0) == Approx(1).margin(1e-4));
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "the cat ";
  CHECK(embedder.vector_of(text).empty());
  CHECK_THROWS_AS(Embedder("/no/such/model", {}), Failure);
}

TEST_CASE("a sentence that stood before is more predictable, and is left out first", "[gateway]") {
  const SentenceScorer scorer(kOwnStories, {.threads = 1});
  const std::string_view story = "Once upon a time there was a little girl named Lily. ";
  const std::string_view noise = "Quartz zebra vexed 93 fjords. ";
  const auto scores = scorer.score({story, noise, story, story});
  REQUIRE(scores);
  const auto mean = [&](std::size_t i) { return (*scores)[i].surprise / static_cast<double>((*scores)[i].tokens); };
  CHECK(mean(2) < mean(1));
  CHECK(mean(3) < mean(1));
  const Compressor compressor({.keep = 0.8, .least_bytes = 10}, [&](const auto& sentences) { return scorer.score(sentences); });
  Compressor::Saved saved;
  const std::string text = std::string(story) + std::string(noise) + std::string(story) + "The end.";
  CHECK(compressor.shorten(text, saved) == std::string(story) + std::string(noise) + "The end.");
  CHECK(saved.after < saved.before);
  // A text longer than the context is scored in pieces.
  const std::vector<std::string_view> many(400, story);
  const auto all = scorer.score(many);
  REQUIRE(all);
  CHECK(all->size() == 400);
}

TEST_CASE("a command line that makes no sense ends with status 2 and a line that says what to do", "[gateway]") {
  if (lacks(kGateway, "tessera-gateway (not built)")) return;
  const Args large = {"--large", "http://127.0.0.1:1"};
  const std::vector<std::pair<Args, std::string>> all = {{{}, "--large URL"},
                                                         {{"--large", "here"}, "is no address"},
                                                         {{"--large", "http://h", "--threshold", "2"}, "--threshold: \"2\" is not a number from 0 to 1"},
                                                         {{"--large", "http://h", "--check", "5"}, "--embedder"},
                                                         {{"--large", "http://h", "--default", "medium"}, "is not small, large or adaptive"},
                                                         {{"--large", "http://h", "--never", "("}, "regular expression"},
                                                         {{"--large", "http://h", "--classifier", TESSERA_SOURCE_DIR "/examples/gateway/difficulty.json"}, "--embedder"},
                                                         {{"--large", "http://h", "--most-entropy", "-1"}, "--most-entropy"},
                                                         {{"--large", "http://h", "--ttl", "soon"}, "--ttl: \"soon\" is not a number"},
                                                         {{"--lagre", "http://h"}, "there is no option"}};
  for (const auto& [args, says] : all) {
    const Outcome outcome = run_program(kGateway, args);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Contains(says));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  const Outcome rules = run_program(kGateway, {"--large", "http://h", "--rules", "/no/rules.json"});
  CHECK(rules.status == 1);
  CHECK_THAT(rules.err, Catch::Contains("cannot read /no/rules.json"));
  const Outcome other = run_program(kGateway, {"--large", "http://h", "--small", "http://h", "--port", "0", "--embedder", kGolden + "encoders/bert-rank", "--classifier",
                                               TESSERA_SOURCE_DIR "/examples/gateway/difficulty.json"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Catch::Contains("train it for this encoder"));
}

}  // namespace test_gateway_program
