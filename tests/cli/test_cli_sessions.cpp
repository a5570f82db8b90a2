// --save-session and --load-session: the second run goes on as the first would have.
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace test_cli_sessions {

using namespace tessera::tests::cli;

namespace {

Outcome tiny(const Args& more) {
  Args args = {"-m", kTiny, "--ignore-eos", "--print-tokens"};
  args.insert(args.end(), more.begin(), more.end());
  return run(args);
}

std::vector<int> ids_of(const Outcome& got) {
  INFO(got.err);
  REQUIRE(got.status == 0);
  return ids_in(got.out);
}

std::vector<int> operator+(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void fails_with(int status, const Outcome& got, const std::string& words) {
  INFO(got.err);
  CHECK(got.status == status);
  CHECK(got.out.empty());
  CHECK(is_one_complaint(got.err));
  CHECK(got.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("two runs with a file between them write what one run writes") {
  if (lacks_program()) return;
  const TemporaryFile file;
  const Args prompt = {"--prompt-ids", "1 50 7", "--seed", "5", "--kv-dtype", "int8"};
  const auto with = [&](const Args& more) {
    Args args = prompt;
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
  const auto whole = ids_of(tiny(with({"-n", "20"})));
  REQUIRE(whole.size() == 20);
  const auto first = ids_of(tiny(with({"-n", "8", "--save-session", file.path()})));
  const auto rest = [&](const Args& more) {
    Args args = {"--load-session", file.path(), "--seed", "5", "-n", "12"};
    args.insert(args.end(), more.begin(), more.end());
    return ids_of(tiny(args));
  };
  CHECK(first + rest({}) == whole);
  CHECK(first + rest({"--kv-layout", "contiguous", "--threads", "1"}) == whole);
  CHECK(first + rest({"--kv-dtype", "int8"}) == whole);

  // On and on, through the same file.
  std::vector<int> parts = first;
  for (int i = 0; i < 4; ++i) {
    parts = parts + ids_of(tiny({"--load-session", file.path(), "--save-session", file.path(), "--seed", "5", "-n", "3"}));
  }
  CHECK(parts == whole);

  // Nothing but the prompt, read once.
  ids_of(tiny(with({"-n", "0", "--save-session", file.path()})));
  CHECK(ids_of(tiny({"--load-session", file.path(), "--seed", "5", "-n", "20"})) == whole);
}

TEST_CASE("a prompt is appended to a loaded session, without another BOS") {
  if (lacks_stories()) return;
  const TemporaryFile file;
  const std::string text = "Once upon a time, there was a little girl";
  const auto run_json = [&](const Args& more) {
    Args args = {"-m", kStories, "--greedy", "--json", "-n", "12"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome got = run(args);
    INFO(got.err);
    REQUIRE(got.status == 0);
    return nlohmann::json::parse(got.out);
  };
  const auto ids = ids_in(run({"-m", kStories, "--tokenize", "-p", text}).out);
  REQUIRE(ids.at(0) == 1);  // BOS
  const auto whole = run_json({"-p", text});
  REQUIRE(run({"-m", kStories, "-p", "Once upon a time", "-n", "0", "--save-session", file.path()}).status == 0);
  const auto later = run_json({"--load-session", file.path(), "--prompt-ids", joined(ids, 5, ids.size() - 5)});
  const auto head = ids_in(run({"-m", kStories, "--tokenize", "-p", "Once upon a time"}).out);
  REQUIRE(head.size() == 5);
  CHECK(later["tokens"] == whole["tokens"]);
  CHECK(later["prompt_tokens"].size() == ids.size() - 5);
  // As text: no BOS on top.
  const auto spoken = run_json({"--load-session", file.path(), "-p", "there was"});
  CHECK(spoken["prompt_tokens"].get<std::vector<int>>() ==
        ids_in(run({"-m", kStories, "--tokenize", "--no-bos", "-p", "there was"}).out));
}

TEST_CASE("a session is saved also when the context is full") {
  if (lacks_program()) return;
  const TemporaryFile file;
  const Outcome full = tiny({"--prompt-ids", "1", "--greedy", "-n", "1000", "--save-session", file.path()});
  CHECK(full.status == 1);
  CHECK(full.err.find("give a larger --ctx, a smaller -n, or --keep") != std::string::npos);
  CHECK(full.err.find("truncate") == std::string::npos);
  CHECK(ids_in(full.out).size() == 64);
  const Outcome more = tiny({"--load-session", file.path(), "--greedy", "-n", "1"});
  CHECK(more.status == 1);
  CHECK(more.err.find("64 of at most 64 tokens") != std::string::npos);
}

TEST_CASE("sessions that cannot be saved or loaded") {
  if (lacks_program()) return;
  const std::string folder = std::filesystem::temp_directory_path().string();
  const TemporaryFile file, no_session("something else");
  ids_of(tiny({"--prompt-ids", "1 2 3", "-n", "2", "--save-session", file.path()}));
  const std::string bytes = slurp(file.path());
  const auto load = [](const std::string& path, const Args& more = {}) {
    Args args = {"--load-session", path, "-n", "2"};
    args.insert(args.end(), more.begin(), more.end());
    return tiny(args);
  };
  fails_with(1, load(folder + "/no-such-file"), folder + "/no-such-file: cannot open");
  fails_with(1, load(folder), "directory");
  fails_with(1, load(no_session.path()), no_session.path() + ": header, offset 0: this is not a saved session");
  const TemporaryFile cut(bytes.substr(0, bytes.size() - 9));
  fails_with(1, load(cut.path()), "it is cut");
  std::string flipped = bytes;
  flipped[flipped.size() - 60] ^= 1;
  const TemporaryFile damaged(flipped);
  fails_with(1, load(damaged.path()), "(layer 1), offset");
  fails_with(1, load(file.path(), {"--kv-dtype", "f16"}), "type F32, not F16: give the --kv-dtype with which it was saved");
  fails_with(1, load(file.path(), {"--kv-dtype", "f32", "--kv-wide", "f16:1"}), ": give the --kv-dtype and --kv-wide with which it was saved");
  fails_with(1, load(file.path(), {"--ctx", "3"}), "give a --ctx of 4 or more");
  const Outcome other = run({"-m", kGolden + "llama-mha.gguf", "--load-session", file.path()});
  fails_with(1, other, "saved with another model");

  const Outcome early = tiny({"--prompt-ids", "1", "-n", "2", "--save-session", folder + "/no/such/folder/s"});
  fails_with(1, early, "there is no folder");
  CHECK(early.out.empty());
  const Outcome unsaved = tiny({"--prompt-ids", "1", "-n", "2", "--save-session", folder});
  CHECK(unsaved.status == 1);
  CHECK(ids_in(unsaved.out).size() == 2);  // the text is there all the same
  CHECK(unsaved.err.find("generate: " + folder + ": ") != std::string::npos);

  for (const Args& args : {Args{"--tokenize", "-p", "a", "--load-session", "s"}, Args{"--plan", "--save-session", "s"},
                           Args{"--logits", "x.f32", "-p", "a", "--load-session", "s"}, Args{"--load-session"}}) {
    const Outcome got = run(args);
    fails_with(2, got, "session");
  }
}

}  // namespace test_cli_sessions
