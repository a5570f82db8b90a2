// What goes wrong is one line on standard error, and an exit status that says whose fault it is.
#include "program.hpp"

namespace test_cli_errors {

using namespace tessera::tests::cli;

namespace {

void fails_with(int status, const Args& args, const std::string& input = {}) {
  const Outcome got = run(args, input);
  std::string line;
  for (const std::string& arg : args) line += " " + arg;
  INFO("generate" << line << "\n" << got.err);
  CHECK(got.status == status);
  CHECK(got.out.empty());
  CHECK(is_one_complaint(got.err));
}

}  // namespace

TEST_CASE("a command line that makes no sense has status 2") {
  if (lacks_program()) return;
  const std::vector<Args> cases = {
      {"--no-such-option"}, {"stray"}, {"-m"}, {"-n"}, {"-n", "abc"}, {"-n", "-5"}, {"-n", "1.5"}, {"-n", "0x10"},
      {"-n", "99999999999999999999999"}, {"-n", "5", "-n", "6"}, {"-n", ""}, {"--temp", "nan"}, {"--temp", "warm"},
      {"--temp", "-1"}, {"--temp", "1e99"}, {"--top-p", "0"}, {"--top-p", "1.5"}, {"--min-p", "2"}, {"--top-k", "-1"},
      {"--seed", "-1"}, {"--seed", "1x"}, {"--repeat-penalty", "0"}, {"--ctx", "4294967296"}, {"--threads", "two"},
      {"--threads", "1000000"}, {"--sliding-window", "-1"}, {"--isa", "mmx"},
      {"--ctx", "4194304k"}, {"--ctx", "k"}, {"--keep", "1kk"},
      {"--kv-tokens", "1kk"}, {"--kv-choice", "h2o"}, {"--kv-tokens", "200", "--kv-choice", "best"}, {"--kv-tokens", "200", "--keep", "9"}, {"--kv-recent", "9"},
      {"--kv-dtype", "q8_0"}, {"--kv-wide", "q8_0:1"}, {"--kv-wide", "int8:"}, {"--kv-wide", "int8:1+x"}, {"--kv-layout", "ring"}, {"--backend", "tpu"}, {"--log-level", "loud"}, {"--stop", ""},
      {"-p", "a", "-f", "b"}, {"-p", "a", "--prompt-ids", "1"}, {"-f", "a", "--prompt-ids", "1"},
      {"--prompt-ids", "1 two 3"}, {"--prompt-ids", "1.5"}, {"--prompt-ids", "99999999999"},
      {"--json", "--print-tokens"}, {"--tokenize"},
      {"--tokenize", "--prompt-ids", "1"}, {"--detokenize"}, {"--detokenize", "-p", "one"}, {"--logits"},
      {"--logits", "x.f32"}, {"--tokenize", "-p", "a", "--plan"}, {"--plan", "--explain"},
      {"--plan", "--print-tokens"}, {"--logits", "x.f32", "-p", "a", "--json"}};
  for (const Args& args : cases) fails_with(2, args);
  CHECK_THAT(run({"--no-such-option", "0.5", "-n", "1"}).err, Catch::StartsWith("generate: there is no option --no-such-option ("));
  for (const auto& [unknown, meant] : std::vector<std::pair<std::string, std::string>>{
           {"--temperature", "--temp"}, {"--temperature=0.5", "--temp"}, {"--ctx-size", "--ctx"}, {"--top_p", "--top-p"}, {"--stpo", "--stop"}}) {
    CHECK_THAT(run({unknown, "-n", "1"}).err, Catch::StartsWith("generate: there is no option " + unknown + ", but " + meant + " ("));
  }
  CHECK_THAT(run({"-n", "1", "stray"}).err, Catch::StartsWith("generate: this argument has no place: stray ("));
}

TEST_CASE("a run that fails has status 1") {
  if (lacks_program()) return;
  const std::string folder = std::filesystem::path(kTiny).parent_path().string();  // has many models
  const TemporaryFile text("this is no model\n"), empty, words("one two"), no_vocabulary(without_vocabulary());
  const std::vector<Args> cases = {
      {"-m", "no-such-file.gguf"}, {"-m", ""}, {"-m", folder}, {"-m", text.path()}, {"-m", empty.path()},
      {"-m", "line\nend.gguf"}, {"-m", kTiny, "-f", "no-such-file"}, {"-m", kTiny, "-f", folder},
      {"-m", no_vocabulary.path(), "-p", "a"}, {"-m", no_vocabulary.path()},
      {"-m", no_vocabulary.path(), "--tokenize", "-p", "a"},
      {"-m", no_vocabulary.path(), "--detokenize", "--prompt-ids", "1"}, {"-m", kTiny, "--prompt-ids", ""},
      {"-m", kTiny, "--no-bos"}, {"-m", kTiny, "--prompt-ids", "104"},
      {"-m", kTiny, "--prompt-ids", "-1"}, {"-m", kTiny, "--prompt-ids", "1", "--ctx", "65"},
      {"-m", kTiny, "--detokenize", "-f", words.path()},
      {"-m", kTiny, "--detokenize", "--prompt-ids", "104"},
      {"-m", kTiny, "--prompt-ids", "1", "--logits", folder + "/no/such/folder"},
      {"-m", kTiny, "--prompt-ids", "1", "--logits", "/dev/full"},
      {"-m", kTiny, "--plan", "--ctx", "1000000"}};
  for (const Args& args : cases) fails_with(1, args);
  CHECK_THAT(run({"-m", kTiny, "--plan", "--ctx", "2k"}).err, Catch::Contains("a context of 2048 tokens"));
}

TEST_CASE("a prompt longer than the context fails, and leaves no file of logits") {
  if (lacks_program()) return;
  std::string ids;
  for (int i = 0; i < 65; ++i) ids += "1 ";
  fails_with(1, {"-m", kTiny, "--prompt-ids", ids});
  const TemporaryFile logits;
  fails_with(1, {"-m", kTiny, "--prompt-ids", ids, "--logits", logits.path()});
  fails_with(1, {"-m", kTiny, "--prompt-ids", "1 2 104", "--logits", logits.path()});
  CHECK_FALSE(std::filesystem::exists(logits.path()));
}

TEST_CASE("a full context ends the text with status 1 and loses no token") {
  if (lacks_program()) return;
  const Args args = {"-m", kTiny, "--prompt-ids", "1", "--greedy", "--ignore-eos", "--print-tokens", "-n"};
  Args up_to_all = args, beyond = args, as_default = args;
  up_to_all.push_back("64");
  beyond.push_back("1000");
  as_default.pop_back();
  const Outcome all = run(up_to_all), more = run(beyond), by_default = run(as_default);
  CHECK(all.status == 0);
  CHECK(ids_in(all.out).size() == 64);
  CHECK(more.status == 1);
  CHECK(more.out == all.out);
  CHECK(by_default.status == 0);
  CHECK(ids_in(by_default.out).size() == 63);
}

TEST_CASE("a file cut anywhere fails") {
  if (lacks_program()) return;
  const std::string whole = slurp(kTiny);
  REQUIRE(whole.size() > 1000);
  for (const std::size_t size : {std::size_t{3}, std::size_t{4}, std::size_t{23}, std::size_t{500}, whole.size() / 2,
                                 whole.size() - 1}) {
    const TemporaryFile cut(whole.substr(0, size));
    fails_with(1, {"-m", cut.path(), "--prompt-ids", "1"});
    fails_with(1, {"-m", cut.path(), "--plan"});
  }
}

TEST_CASE("a vocabulary without weights can tokenize and nothing else") {
  const std::string vocabulary = kShared + "/tokenizers/ggml-vocab-gpt-2.gguf";
  if (lacks_program() || lacks(vocabulary, "../shared/tokenizers")) return;
  CHECK(run({"-m", vocabulary, "--tokenize", "-p", "Hello world"}).out == "15496 995\n");
  fails_with(1, {"-m", vocabulary, "-p", "Hello world"});
  fails_with(1, {"-m", vocabulary, "--plan"});
  fails_with(1, {"-m", vocabulary, "--explain"});
  fails_with(1, {"-m", vocabulary, "--detokenize", "--prompt-ids", "1000000"});
}

TEST_CASE("with --keep a text goes on beyond the context, and a wrong one is an error") {
  if (lacks_program()) return;
  const Args common = {"-m", kTiny, "--prompt-ids", "1", "--print-tokens", "--ignore-eos", "--ctx", "16"};
  Args args = common;
  args.insert(args.end(), {"-n", "60", "--keep", "6"});
  const Outcome got = run(args);
  INFO(got.err);
  CHECK(got.status == 0);
  CHECK(ids_in(got.out).size() == 60);
  args = common;
  args.insert(args.end(), {"-n", "60"});
  CHECK(run(args).status == 1);  // a full context is the end
  args.insert(args.end(), {"--keep", "12"});
  fails_with(1, args);  // no room beside 4 sinks
  args = common;
  args.insert(args.end(), {"--kv-page", "24"});
  fails_with(2, args);
}

TEST_CASE("with --kv-tokens a text goes on beyond the context, whatever stays") {
  if (lacks_program()) return;
  const std::string stories = TESSERA_SOURCE_DIR "/models/tessera-stories-draft.gguf";
  for (const char* choice : {"window", "h2o", "snapkv"}) {
    const Outcome got = run({"-m", stories, "-p", "Once upon a time", "--print-tokens", "--ignore-eos", "--ctx", "160", "-n", "300",
                             "--kv-tokens", "128", "--kv-choice", choice});
    INFO(choice << ": " << got.err);
    CHECK(got.status == 0);
    CHECK(ids_in(got.out).size() == 300);
  }
  CHECK(run({"-m", stories, "-p", "Once", "-n", "2", "--kv-tokens", "200", "--kv-choice", "snapkv", "--kv-recent", "160"}).status == 0);
  fails_with(1, {"-m", stories, "-p", "Once", "--kv-tokens", "200", "--kv-choice", "snapkv", "--kv-recent", "175"});  // all that stay
  fails_with(1, {"-m", kTiny, "--prompt-ids", "1", "--kv-tokens", "100"});  // fewer than a budget has at least
  fails_with(1, {"-m", stories, "-p", "a", "--kv-tokens", "100k"});
}

TEST_CASE("what can and what cannot be chosen yet is said, not ignored") {
  if (lacks_program()) return;
  const Args common = {"-m", kTiny, "--prompt-ids", "1", "-n", "2", "--print-tokens", "--ignore-eos"};
  for (const char* layout : {"contiguous", "paged"}) {
    for (const char* dtype : {"auto", "f32", "f16", "bf16", "int8"}) {
      Args args = common;
      args.insert(args.end(), {"--kv-layout", layout, "--kv-dtype", dtype});
      const Outcome got = run(args);
      INFO(layout << " " << dtype << ": " << got.err);
      CHECK(got.status == 0);
      CHECK(ids_in(got.out).size() == 2);
    }
  }
  Args args = common;
  args.insert(args.end(), {"--backend", "cuda"});
  const Outcome got = run(args);
  CHECK(got.status == 1);
  CHECK(is_one_complaint(got.err));
}

}  // namespace test_cli_errors
