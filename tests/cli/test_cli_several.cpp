// --samples, --best-of and --beams: texts after one prompt.
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace test_cli_several {

using namespace tessera::tests::cli;
using Json = nlohmann::json;

namespace {

const std::string kModel = TESSERA_SOURCE_DIR "/models/tessera-stories-draft.gguf";

Args with(const Args& more) {
  Args args = {"-m", kModel, "-p", "Once upon a time", "-n", "12", "--seed", "5"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::string told(const Args& more) {
  const Outcome got = run(with(more));
  INFO(got.err);
  REQUIRE(got.status == 0);
  return got.out;
}

void is_refused(const Args& args, const std::string& words) {
  const Outcome got = run(args);
  INFO(got.err);
  CHECK(got.status == 2);
  CHECK(got.out.empty());
  CHECK(is_one_complaint(got.err));
  CHECK(got.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("the first sample is the text of that seed, and the others are others") {
  if (lacks_program()) return;
  const Json one = Json::parse(told({"--json"}));
  const Json all = Json::parse(told({"--json", "--samples", "3"}));
  REQUIRE(all["samples"].size() == 3);
  CHECK(all["samples"][0]["tokens"] == one["tokens"]);
  CHECK(all["samples"][0]["text"] == one["text"]);
  CHECK(all["samples"][0]["finish_reason"] == one["finish_reason"]);
  CHECK(all["samples"][1]["tokens"] != one["tokens"]);
  CHECK(all["prompt_tokens"] == one["prompt_tokens"]);
  CHECK(all["seed"] == 5);
  CHECK(!all.contains("best"));
  CHECK(Json::parse(told({"--json", "--samples", "3", "--draft", "ngram"}))["samples"] == all["samples"]);
  const std::string text = told({"--samples", "3"});
  for (int i = 0; i < 3; ++i) {
    CHECK(text.find("--- sample " + std::to_string(i + 1) + " of 3: as many as allowed\nOnce upon a time" + all["samples"][i]["text"].get<std::string>()) !=
          std::string::npos);
  }
  const std::string ids = told({"--samples", "2", "--print-tokens"});
  CHECK(ids.substr(0, ids.find('\n')) == joined(one["tokens"].get<std::vector<int>>(), 0, one["tokens"].size()));
}

TEST_CASE("the best sample is the one with the highest mean log-probability") {
  if (lacks_program()) return;
  const Json all = Json::parse(told({"--json", "--best-of", "4"}));
  const std::size_t best = all["best"];
  for (const Json& sample : all["samples"]) {
    CHECK(sample["mean_logprob"].get<double>() <= all["samples"][best]["mean_logprob"].get<double>());
    CHECK(sample["mean_logprob"].get<double>() * static_cast<double>(sample["tokens"].size()) == Approx(sample["logprob"].get<double>()));
  }
  const std::string text = told({"--best-of", "4", "--no-echo"});
  CHECK(text.find("--- sample " + std::to_string(best + 1) + " of 4") == 0);
  CHECK(text.find(all["samples"][best]["text"].get<std::string>()) != std::string::npos);
  CHECK(text.find("---", 3) == std::string::npos);  // no other
}

TEST_CASE("beams come best first, and one beam is the greedy text") {
  if (lacks_program()) return;
  const Json beams = Json::parse(told({"--json", "--beams", "4", "--results", "3"}));
  REQUIRE(beams["beams"].size() == 3);
  for (int i = 1; i < 3; ++i) CHECK(beams["beams"][i]["score"].get<double>() <= beams["beams"][i - 1]["score"].get<double>());
  CHECK(!beams.contains("seed"));
  const Json greedy = Json::parse(told({"--json", "--greedy"}));
  const Json one = Json::parse(told({"--json", "--beams", "1", "--length-penalty", "0", "--early-stopping", "never"}));
  REQUIRE(one["beams"].size() == 1);
  CHECK(one["beams"][0]["tokens"] == greedy["tokens"]);
  CHECK(one["beams"][0]["text"] == greedy["text"]);
  CHECK(one["beams"][0]["score"] == one["beams"][0]["logprob"]);
  CHECK(told({"--beams", "4"}).find("--- beam 1 of 1: as many as allowed; score -") == 0);
}

TEST_CASE("options of several texts that cannot be are refused") {
  if (lacks_program()) return;
  is_refused(with({"--samples", "2", "--beams", "2"}), "exclude each other");
  is_refused(with({"--samples", "0"}), "1 to 1024");
  is_refused(with({"--beams", "1025"}), "1 to 1024");
  is_refused(with({"--results", "2"}), "for --beams");
  is_refused(with({"--samples", "2", "--length-penalty", "1"}), "for --beams");
  is_refused(with({"--beams", "2", "--results", "3"}), "1 to 2");
  is_refused(with({"--beams", "2", "--early-stopping", "soon"}), "likely, first or never");
  is_refused(with({"--beams", "2", "--draft", "ngram"}), "not for --beams");
  is_refused(with({"--beams", "2", "--stop", "x"}), "not for --beams");
  is_refused(with({"--beams", "2", "--keep", "20"}), "--keep");
  is_refused(with({"--beams", "2", "--kv-layout", "contiguous"}), "--kv-layout contiguous is not for --beams");
  is_refused(with({"--samples", "2", "--save-session", "never.tkv"}), "one text");
  is_refused(with({"--samples", "2", "--logprobs", "2"}), "one text");
  is_refused({"-m", kModel, "-p", "x", "-n", "0", "--samples", "2"}, "a token at least");
  is_refused(with({"--samples", "2", "--plan"}), "for generating text");
}

}  // namespace test_cli_several
