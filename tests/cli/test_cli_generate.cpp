// Text, tokens, logits and JSON from the command line.
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "program.hpp"

namespace test_cli_generate {

using namespace tessera::tests::cli;
using Json = nlohmann::json;

namespace {

std::vector<float> floats_in(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float largest = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

std::vector<float> logits_of(const Args& prompt) {
  const TemporaryFile file;
  Args args = {"--kv-dtype", "f32", "--logits", file.path()};
  args.insert(args.end(), prompt.begin(), prompt.end());
  const Outcome got = run(args);
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK(got.out.empty());
  return floats_in(slurp(file.path()));
}

Outcome stories(const Args& more) {
  Args args = {"-m", kStories};
  args.insert(args.end(), more.begin(), more.end());
  const Outcome got = run(args);
  INFO(got.err);
  REQUIRE(got.status == 0);
  return got;
}

}  // namespace

TEST_CASE("logits of a tiny model are transformers'") {
  if (lacks_program()) return;
  const std::string ids = slurp(kGolden + "llama-gqa.tokens.txt");
  const std::vector<float> want = floats_in(slurp(kGolden + "llama-gqa.logits.f32"));
  CHECK(largest_difference(logits_of({"-m", kTiny, "--prompt-ids", ids}), want) <= 1e-3f);
}

TEST_CASE("a model without a vocabulary takes ids and gives ids") {
  if (lacks_program()) return;
  const TemporaryFile model(without_vocabulary());
  const Args args = {"-m", model.path(), "--prompt-ids", "1, 2,3", "-n", "5", "--seed", "1", "--print-tokens"};
  const Outcome got = run(args);
  CHECK(got.status == 0);
  CHECK(ids_in(got.out).size() == 5);
  CHECK(got.out == run(args).out);
  CHECK(got.err.starts_with("[5 tokens after a prompt of 3; first after "));
  CHECK_THAT(got.err, Catch::Contains("; seed 1;"));
}

TEST_CASE("stories260K, greedy, gives llama2.c's ids") {
  if (lacks_stories()) return;
  const std::vector<int> want = ids_in(slurp(kShared + "/models/stories260K.greedy-tokens.txt"));
  const Outcome got = stories({"-p", "", "-n", "199", "--greedy", "--print-tokens", "--kv-dtype", "f32"});
  CHECK(ids_in(got.out) == std::vector<int>(want.begin() + 1, want.end()));
  CHECK(got.out.find('\n') == got.out.size() - 1);
}

TEST_CASE("stories260K gives llama2.c's logits") {
  if (lacks_stories()) return;
  const std::vector<int> ids = ids_in(slurp(kShared + "/models/stories260K.greedy-tokens.txt"));
  const std::vector<float> want = floats_in(slurp(kShared + "/models/stories260K.logits.f32"));
  CHECK(largest_difference(logits_of({"-m", kStories, "--prompt-ids", joined(ids, 0, 64)}), want) <= 2e-3f);
}

TEST_CASE("the same seed gives the same text, however it is printed") {
  if (lacks_stories()) return;
  const Args prompt = {"-p", "Once upon a time", "-n", "40", "--seed", "77"};
  const auto with = [&](const Args& more) {
    Args args = prompt;
    args.insert(args.end(), more.begin(), more.end());
    return stories(args).out;
  };
  const std::string streamed = with({});
  CHECK(streamed.starts_with("Once upon a time"));
  CHECK(streamed.ends_with("\n"));
  CHECK(streamed == with({}));
  CHECK(streamed == with({"--no-stream"}));
  CHECK(streamed == with({"--threads", "1"}));
  CHECK(streamed == with({"--logprobs", "3"}));
  CHECK(with({"--no-echo"}) == streamed.substr(prompt[1].size()));
  CHECK(streamed != stories({"-p", "Once upon a time", "-n", "40", "--seed", "78"}).out);
}

TEST_CASE("without a seed every run is another, and its seed is told") {
  if (lacks_stories()) return;
  const Outcome first = stories({"-n", "60"});
  const std::size_t at = first.err.find("; seed ");
  REQUIRE(at != std::string::npos);
  const std::size_t from = at + 7;
  const std::string seed = first.err.substr(from, first.err.find(';', from) - from);
  CHECK(stories({"-n", "60", "--seed", seed}).out == first.out);
  CHECK(stories({"-n", "60"}).out != first.out);
}

TEST_CASE("--json is one object with everything in it") {
  if (lacks_stories()) return;
  const Outcome got = stories({"-p", "Once upon a time", "-n", "8", "--greedy", "--json", "--logprobs", "2"});
  CHECK(got.err.empty());
  const Json json = Json::parse(got.out);
  CHECK(json["prompt_tokens"] == Json({1, 403, 407, 261, 378}));
  CHECK(json["tokens"] == Json({432, 383, 286, 261, 376, 298, 315, 421}));
  CHECK_THAT(json["text"].get<std::string>(), Catch::StartsWith(", there was a little"));
  CHECK(json["finish_reason"] == "max_tokens");
  CHECK(json["figures"]["prompt_tokens"] == 5);
  CHECK(json["figures"]["tokens"] == 8);
  CHECK(json["figures"]["bytes_per_token"].get<std::uint64_t>() > 1000000);
  REQUIRE(json["logprobs"].size() == 8);
  for (const Json& token : json["logprobs"]) {
    CHECK(token["logprob"].get<double>() <= 0.0);
    REQUIRE(token["top"].size() == 2);
    CHECK(token["top"][0]["token"] == token["token"]);  // greedy
    CHECK(token["top"][0]["logprob"].get<double>() >= token["top"][1]["logprob"].get<double>());
  }
  const Json drawn = Json::parse(stories({"-n", "3", "--seed", "9", "--json"}).out);
  CHECK(drawn["seed"] == 9);
}

TEST_CASE("the other answers as JSON") {
  if (lacks_program()) return;
  const Json plan = Json::parse(run({"-m", kTiny, "--plan", "--json", "--ctx", "32", "--kv-dtype", "f16"}).out);
  CHECK(plan["context"] == 32);
  CHECK(plan["kv_dtype"] == "F16");
  CHECK(plan["kv_wide"].is_null());
  const Json wide = Json::parse(run({"-m", kTiny, "--plan", "--json", "--ctx", "32", "--kv-dtype", "f16", "--kv-wide", "f32:1+0"}).out);
  CHECK(wide["kv_wide"] == Json{{"dtype", "F32"}, {"first", 1}, {"last", 0}});
  CHECK(wide["kv_per_token"] > plan["kv_per_token"]);
  CHECK(plan["peak"].get<std::uint64_t>() >= plan["weights"].get<std::uint64_t>() + plan["kv"].get<std::uint64_t>());
  const Json kernels = Json::parse(run({"-m", kTiny, "--explain", "--json"}).out);
  CHECK(kernels["operations"].size() > 3);
  CHECK(kernels["operations"][0]["backend"] == "cpu");
  CHECK(kernels["numerics"] == "auto");
  CHECK(Json::parse(run({"-m", kTiny, "--explain", "--json", "--numerics", "reference"}).out)["numerics"] == "reference");
}

TEST_CASE("--plan and --explain are tables") {
  if (lacks_program()) return;
  const Outcome plan = run({"-m", kTiny, "--plan"});
  CHECK(plan.status == 0);
  CHECK_THAT(plan.out, Catch::Contains("weights") && Catch::Contains("peak") && Catch::Contains("64 tokens"));
  const Outcome kernels = run({"-m", kTiny, "--explain"});
  CHECK(kernels.status == 0);
  CHECK_THAT(kernels.out, Catch::StartsWith("operation") && Catch::Contains("attention"));
  const std::string reference = run({"-m", kTiny, "--explain", "--numerics", "reference"}).out;
  const std::size_t row = reference.find("\nnumerics ");
  REQUIRE(row != std::string::npos);
  CHECK_THAT(reference.substr(row, reference.find('\n', row + 1) - row), Catch::Contains(" reference "));
}

TEST_CASE("a stop string ends the text before it, also across tokens") {
  if (lacks_stories()) return;
  const Args base = {"-p", "Once upon a time", "-n", "60", "--greedy", "--json"};
  const auto with = [&](const Args& more) {
    Args args = base;
    args.insert(args.end(), more.begin(), more.end());
    return Json::parse(stories(args).out);
  };
  const std::string whole = with({})["text"];
  const std::string stop = whole.substr(20, 9);  // begins and ends inside words
  const Json stopped = with({"--stop", "[never, seen]", "--stop", stop});
  CHECK(stopped["finish_reason"] == "stop_string");
  CHECK(stopped["text"] == whole.substr(0, whole.find(stop)));
  // What might have been the beginning of a stop string is printed in the end.
  CHECK(with({"--stop", whole.substr(whole.size() - 5) + "never"})["text"] == whole);
}

TEST_CASE("-n 0 reads the prompt and writes nothing") {
  if (lacks_stories()) return;
  CHECK(stories({"-p", "Once", "-n", "0"}).out == "Once\n");
  CHECK(Json::parse(stories({"-p", "Once", "-n", "0", "--json"}).out)["tokens"].empty());
}

TEST_CASE("the binary has a story of its own") {
  if (lacks_program()) return;
  const Outcome got = run({"-n", "30"});
  if (got.status == 1 && got.err.find("without a default model") != std::string::npos) {
    tessera::tests::skip("the default model is not in this build");
    CHECK(is_one_complaint(got.err));
    return;
  }
  INFO(got.err);
  CHECK(got.status == 0);
  CHECK(got.out.size() > 30);
  CHECK(got.err.front() == '[');
  CHECK_THAT(got.err, Catch::Contains(" tokens/s; ") && Catch::Contains(" read a token; seed "));
}

TEST_CASE("--help teaches and --version tells") {
  if (lacks_program()) return;
  const Outcome help = run({"--help"});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  for (const char* word : {"--model", "--prompt-ids", "--kv-dtype", "--logits", "Examples:", "Exit status"}) {
    CHECK_THAT(help.out, Catch::Contains(word));
  }
  CHECK_THAT(run({"--version"}).out, Catch::StartsWith("generate "));
}

TEST_CASE("the small example runs") {
  const std::string embed = TESSERA_BIN_DIR "/embed";
  if (lacks(embed, "the example program \"embed\" (not built)")) return;
  CHECK(run_program(embed, {}).status == 1);
  CHECK(run_program(embed, {"no-such-file.gguf"}).status == 1);
  if (lacks_stories()) return;
  const Outcome got = run_program(embed, {kStories});
  CHECK(got.status == 0);
  CHECK(got.out.size() > 100);
}

}  // namespace test_cli_generate
