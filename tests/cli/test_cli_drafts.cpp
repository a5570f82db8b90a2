// --draft, --draft-model and --draft-max: the same tokens, and figures of what came of them.
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace test_cli_drafts {

using namespace tessera::tests::cli;
using Json = nlohmann::json;

namespace {

const std::string kModels = TESSERA_SOURCE_DIR "/models/";

Json told(Args args) {
  for (const char* more : {"--json", "--ignore-eos", "--seed", "3"}) args.emplace_back(more);
  const Outcome got = run(args);
  INFO(got.err);
  REQUIRE(got.status == 0);
  return Json::parse(got.out);
}

void is_refused(const Args& args, const std::string& words) {
  const Outcome got = run(args);
  INFO(got.err);
  CHECK(got.status != 0);
  CHECK(got.out.empty());
  CHECK(is_one_complaint(got.err));
  CHECK(got.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("drafts are seen in the figures alone") {
  if (lacks_program()) return;
  const std::string model = kModels + "tessera-stories.gguf", draft = kModels + "tessera-stories-draft.gguf";
  for (const char* temperature : {"0", "0.9"}) {
    const Args usual = {"-m", model, "-p", "Once upon a time", "-n", "60", "--temp", temperature};
    const Json plain = told(usual);
    CHECK(plain["figures"]["drafted"] == 0);
    CHECK(plain["figures"]["steps"] == 59);  // the first token comes from the prompt's logits
    for (const Args& drafting : {Args{"--draft", "ngram"}, Args{"--draft", "suffix", "--draft-max", "3"}, Args{"--draft", "suffix", "--draft-branches", "4"}, Args{"--draft", "early-exit:3"}, Args{"--draft", "lookahead"},
                                 Args{"--draft-model", draft}, Args{"--draft", "model", "--draft-model", draft, "--draft-max", "4"}}) {
      Args args = usual;
      args.insert(args.end(), drafting.begin(), drafting.end());
      const Json spec = told(args);
      INFO(drafting[1]);
      CHECK(spec["tokens"] == plain["tokens"]);
      CHECK(spec["text"] == plain["text"]);
      const auto figure = [&](const char* name) { return spec["figures"][name].get<std::size_t>(); };
      CHECK(figure("steps") + figure("accepted") == 59);
      CHECK(figure("accepted") <= figure("drafted"));
    }
  }
}

TEST_CASE("what a schema forces is drafted unless that is forbidden") {
  if (lacks_program()) return;
  const Args usual = {"-m", kModels + "tessera-stories.gguf", "-p", "Tim", "-n", "120", "--json-schema",
                      R"({"type": "object", "properties": {"a_rather_long_name": {"enum": ["an answer", "another thing"]}, "and_one_more_name": {"type": "boolean"}},
                          "required": ["a_rather_long_name", "and_one_more_name"], "additionalProperties": false})"};
  Args without = usual, other = usual;
  without.insert(without.end(), {"--draft", "none"});
  other.insert(other.end(), {"--draft", "suffix"});
  const Json plain = told(without), forced = told(usual), both = told(other);
  CHECK(plain["figures"]["drafted"] == 0);
  CHECK(forced["figures"]["drafted"] > 0);
  CHECK(forced["tokens"] == plain["tokens"]);
  CHECK(both["tokens"] == plain["tokens"]);
}

TEST_CASE("an MTP head is loaded and drafts when it is asked for") {
  if (lacks_program()) return;
  const Args usual = {"-m", TESSERA_SOURCE_DIR "/tests/golden/data/mtp/trained.gguf", "--prompt-ids", "1 2 3 4 5", "-n", "60", "--temp", "0.9"};
  const Json plain = told(usual);
  Args args = usual;
  args.insert(args.end(), {"--draft", "mtp"});
  const Json spec = told(args);
  CHECK(spec["tokens"] == plain["tokens"]);
  CHECK(spec["figures"]["accepted"].get<std::size_t>() <= spec["figures"]["drafted"].get<std::size_t>());
  const Outcome shown = run({"-m", usual[1], "--explain", "--draft", "mtp"});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("MTP head") != std::string::npos);
  CHECK(run({"-m", usual[1], "--explain"}).out.find("left out: 1 of") != std::string::npos);
}

TEST_CASE("heads of another file draft when they are named") {
  if (lacks_program()) return;
  const std::string data = TESSERA_SOURCE_DIR "/tests/golden/data/";
  const Args usual = {"-m", data + "llama-gqa.gguf", "--prompt-ids", "1 2 3 4 5", "-n", "50", "--temp", "0.9"};
  const Json plain = told(usual);
  for (const char* kind : {"medusa", "eagle", "eagle3", "eagle3.gguf"}) {
    INFO(kind);
    Args args = usual;
    args.insert(args.end(), {"--draft-heads", data + "heads/llama-gqa/" + kind, "--draft-max", "4"});
    CHECK(told(args)["tokens"] == plain["tokens"]);
  }
  const Outcome shown = run({"-m", usual[1], "--explain", "--draft-heads", data + "heads/llama-gqa/medusa"});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("Medusa heads, 3 tokens") != std::string::npos);
}

TEST_CASE("the default model has an EAGLE head of its own") {
  if (lacks_program()) return;
  const Args usual = {"-n", "60", "--temp", "0"};
  const Json plain = told(usual);
  Args args = usual;
  args.insert(args.end(), {"--draft", "eagle", "--draft-max", "4"});
  const Json drafted = told(args);
  CHECK(drafted["tokens"] == plain["tokens"]);
  CHECK(drafted["figures"]["drafted"] > 0);
  args = usual;
  args.insert(args.end(), {"--draft", "medusa", "--draft-heads", kModels + "tessera-stories-medusa", "--draft-max", "4"});
  const Json medusa = told(args);
  CHECK(medusa["tokens"] == plain["tokens"]);
  CHECK(medusa["figures"]["drafted"] > 0);
}

TEST_CASE("the last line tells what came of drafts") {
  if (lacks_program()) return;
  const Outcome got = run({"-m", kModels + "tessera-stories.gguf", "-n", "80", "--greedy", "--draft-model", kModels + "tessera-stories.gguf"});
  REQUIRE(got.status == 0);
  CHECK(got.err.find(" tokens a step, ") != std::string::npos);
  CHECK(got.err.find(" drafts accepted") != std::string::npos);
  CHECK(run({"-m", kModels + "tessera-stories.gguf", "-n", "8", "--greedy"}).err.find("drafts") == std::string::npos);
}

TEST_CASE("drafting options that cannot be are refused") {
  if (lacks_program()) return;
  const auto with = [](Args more) {
    Args args = {"-m", kTiny, "--prompt-ids", "1 2 3", "-n", "3"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
  is_refused(with({"--draft", "oracle"}), "ngram|suffix|early-exit:E|lookahead|mtp|heads|eagle|medusa|model");
  is_refused(with({"--draft", "early-exit:"}), "early-exit:8");
  is_refused(with({"--draft", "early-exit:2x"}), "early-exit:8");
  is_refused(with({"--draft", "early-exit:99"}), "early exit after layer 99");
  is_refused(with({"--draft", "mtp"}), "no MTP head");
  is_refused(with({"--draft", "model"}), "--draft-model FILE");
  is_refused(with({"--draft", "heads"}), "--draft-heads FILE");
  is_refused(with({"--draft", "eagle"}), "--draft-heads FILE");
  is_refused(with({"--draft", "medusa"}), "--draft-heads FILE");
  is_refused(with({"--draft", "ngram", "--draft-heads", kTiny}), "--draft-heads goes with");
  is_refused(with({"--draft-heads", kTiny}), "has no draft heads for another model");
  is_refused(with({"--draft-heads", TESSERA_SOURCE_DIR "/tests/golden/data/heads/qwen3/medusa"}), "the draft heads are for a model of");
  is_refused(with({"--draft", "ngram", "--draft-model", kTiny}), "--draft-model goes with");
  is_refused(with({"--draft-max", "3"}), "--draft-max needs");
  is_refused(with({"--draft", "ngram", "--draft-max", "65"}), "1 to 64");
  is_refused(with({"--draft", "ngram", "--draft-max", "0"}), "1 to 64");
  is_refused(with({"--draft", "ngram", "--draft-max", "many"}), "not a whole number");
  is_refused(with({"--draft", "suffix", "--draft-branches", "17"}), "1 to 16");
  is_refused(with({"--draft", "ngram", "--draft-branches", "2"}), "--draft suffix");
  is_refused(with({"--draft-model", "/nowhere.gguf"}), "/nowhere.gguf");
  is_refused(with({"--draft-model", kModels + "tessera-stories-draft.gguf"}), "another vocabulary");
  is_refused(with({"--draft", "ngram", "--plan"}), "--draft is for generating text");
}

}  // namespace test_cli_drafts
