// tessera-bench --trace as its users run it: requests of a file or made up, served side by side. Times are not judged;
// figures must be there, add up, and say what the trace says.
#include "program.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

namespace test_bench_trace {

using namespace tessera::tests::cli;

namespace {

using Json = nlohmann::json;

const std::string kBench = TESSERA_BIN_DIR "/tessera-bench";

bool lacks_bench() { return lacks(kBench, "tessera-bench (not built)"); }

Outcome tiny(Args more) {
  Args args = {"--shape", "tiny", "--threads", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return run_program(kBench, args);
}

std::vector<Json> lines_of(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  std::vector<Json> lines;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

void fails_with(int status, const Args& args, const std::string& about) {
  const Outcome got = tiny(args);
  INFO(about << "\n" << got.err);
  CHECK(got.status == status);
  CHECK(got.out.empty());
  CHECK(got.err.starts_with("tessera-bench: "));
  CHECK(got.err.find('\n') == got.err.size() - 1);
  CHECK(got.err.find(about) != std::string::npos);
}

constexpr const char* kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,37,4\n"
    "2023-11-16 18:15:46.6905900,90,7\r\n"
    "2023-11-16 18:15:46.7205900,12,1\n"
    "2023-11-16 18:15:46.7105900,64,9\n";

// Three requests of which two begin with the same two blocks of 512 tokens.
constexpr const char* kMooncake =
    R"({"timestamp": 0, "input_length": 1200, "output_length": 16, "hash_ids": [1, 2, 3]}
{"timestamp": 900, "input_length": 1500, "output_length": 32, "hash_ids": [1, 2, 4]}
{"timestamp": 1800, "input_length": 600, "output_length": 16, "hash_ids": [5, 6]}
)";

}  // namespace

TEST_CASE("--json gives an object for each way to serve, with these keys and no others") {
  if (lacks_bench()) return;
  const TemporaryFile trace(kAzure);
  const auto lines = lines_of(tiny({"--trace", trace.path(), "--batching", "static,dynamic,continuous", "--policy",
                                    "fcfs,shortest", "--max-running", "2", "--json"}));
  REQUIRE(lines.size() == 6);
  const std::set<std::string> wanted = {"test",    "batching",   "policy",       "requests",  "tokens_per_s",
                                        "ttft_ms", "itl_ms",     "tpot_ms",      "e2e_ms",    "queue_ms",
                                        "goodput", "prefix_hit", "prefix_ideal", "preempted", "recomputed_tokens",
                                        "refused", "step_us"};
  std::set<std::string> ways;
  for (const Json& line : lines) {
    INFO(line.dump());
    std::set<std::string> keys;
    for (const auto& [key, of] : line.items()) keys.insert(key);
    CHECK(keys == wanted);
    CHECK(line.at("test") == "trace");
    CHECK(line.at("requests") == 4);
    CHECK(line.at("refused") == 0);
    CHECK(line.at("tokens_per_s") > 0);
    CHECK(line.at("step_us") > 0);
    CHECK(line.at("prefix_hit") == 0);
    CHECK(line.at("prefix_ideal") == 0);
    for (const char* time : {"ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms"}) {
      const Json& of = line.at(time);
      CHECK(of.size() == 4);
      CHECK(of.at("p50") >= 0);
      CHECK(of.at("p95") >= of.at("p50"));
      CHECK(of.at("p99") >= of.at("p95"));
      CHECK(of.at("max") > 0);
    }
    CHECK(line.at("queue_ms").at("max") <= line.at("ttft_ms").at("max"));
    CHECK(line.at("ttft_ms").at("max") <= line.at("e2e_ms").at("max"));
    ways.insert(line.at("batching").get<std::string>() + " " + line.at("policy").get<std::string>());
  }
  CHECK(ways.size() == 6);
}

TEST_CASE("equal blocks of a trace's prompts are found again, as many as the ideal") {
  if (lacks_bench()) return;
  const TemporaryFile trace(kMooncake);
  const auto lines = lines_of(tiny({"--trace", trace.path(), "--scale", "8", "--kv-budget", "16MiB", "--json"}));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("prefix_ideal").get<double>() == Approx(2 * 64 / double(150 + 188 + 75)));
  CHECK(lines[0].at("prefix_hit") == lines[0].at("prefix_ideal"));
}

TEST_CASE("each way begins with an empty prefix index") {
  if (lacks_bench()) return;
  const TemporaryFile trace(kMooncake);
  const auto lines =
      lines_of(tiny({"--trace", trace.path(), "--scale", "8", "--kv-budget", "16MiB", "--repeat", "2", "--json"}));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("prefix_hit") == lines[1].at("prefix_hit"));
}

TEST_CASE("goodput counts what is served within the level alone") {
  if (lacks_bench()) return;
  const TemporaryFile trace(kAzure);
  const auto good = lines_of(tiny({"--trace", trace.path(), "--slo-ttft-ms", "1e8", "--slo-tpot-ms", "1e8", "--json"}));
  CHECK(good.at(0).at("goodput") > 0);
  const auto none = lines_of(tiny({"--trace", trace.path(), "--slo-ttft-ms", "0.001", "--json"}));
  CHECK(none.at(0).at("goodput") == 0);
}

TEST_CASE("requests that a queue or a model has no room for are refused and counted") {
  if (lacks_bench()) return;
  const auto full = lines_of(tiny(
      {"--rate", "1e9", "--requests", "20", "--lengths", "8,4", "--max-running", "1", "--max-waiting", "5", "--json"}));
  CHECK(full.at(0).at("requests") == 20);
  CHECK(full.at(0).at("refused") == 14);  // one runs
  const TemporaryFile trace(kAzure);
  const Outcome small = run_program(kBench, {"-m", kTiny, "--threads", "1", "--trace", trace.path(), "--json"});
  CHECK(lines_of(small).at(0).at("refused") == 2);  // its context is 64
}

TEST_CASE("preempted requests go to the file, or are computed again") {
  if (lacks_bench()) return;
  const Args tight = {"--rate",      "1e9",    "--requests", "8", "--lengths", "64,64",
                      "--kv-budget", "500KiB", "--headroom", "0", "--json"};
  const auto again = lines_of(tiny(tight));
  CHECK(again.at(0).at("preempted") > 0);
  CHECK(again.at(0).at("recomputed_tokens") > 0);
}

TEST_CASE("the tables have a row for each way and each time, the picture is well-formed") {
  if (lacks_bench()) return;
  const TemporaryFile svg;
  const Outcome got = tiny({"--rate", "500", "--requests", "9", "--lengths", "9,5", "--batching", "static,continuous",
                            "--plot", svg.path()});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK(got.err.empty());
  for (const char* word :
       {"machine", "requests  made up, 500 a second", "\nbatching ", "\nstatic ", "\ncontinuous ", "p99", "goodput",
        "\nto the first token ", "\nbetween tokens ", "\na token, on average ", "\nto the last token ", "\nwaiting "}) {
    INFO(word);
    CHECK(got.out.find(word) != std::string::npos);
  }
  const std::string picture = slurp(svg.path());
  CHECK(picture.starts_with("<svg "));
  CHECK(picture.ends_with("</svg>\n"));
  CHECK(picture.find("nan") == std::string::npos);
  CHECK(picture.find("inf") == std::string::npos);
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = picture.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count("class=\"dot\"") == 10);
  CHECK(count("class=\"open\"") == 10);
}

TEST_CASE("a trace that cannot be served as asked is one line, status 2 or 1") {
  if (lacks_bench()) return;
  fails_with(2, {"--policy", "fcfs"}, "--policy goes with --trace or --rate");
  fails_with(2, {"--slo-ttft-ms", "3"}, "--slo-ttft-ms goes with --trace or --rate");
  fails_with(2, {"--rate", "3", "--policy", "best"}, "shortest");
  fails_with(2, {"--rate", "3", "--batching", "all"}, "continuous");
  fails_with(2, {"--rate", "0"}, "--rate");
  for (const char* lengths : {"", "3", "3,", "0,1", "1,0", "a,b", "1,2,3", "nan,1", "1,inf"}) {
    fails_with(2, {"--rate", "3", "--lengths", lengths}, "--lengths");
  }
  fails_with(2, {"--rate", "3", "-p", "4"}, "-p does not go");
  fails_with(2, {"--rate", "3", "--worker"}, "--worker does not go");
  fails_with(2, {"--rate", "3", "--trace", "x"}, "--rate makes requests up");
  fails_with(1, {"--trace", "no-such-trace.csv"}, "no-such-trace.csv");
  const TemporaryFile wrong("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,5,6\nyesterday,1,2\n"),
      empty("A,B,C\n");
  fails_with(1, {"--trace", wrong.path()}, "line 3");
  fails_with(1, {"--trace", empty.path()}, "no requests");
  fails_with(1, {"--rate", "3", "--plot", "/no/such/folder/x.svg"}, "/no/such/folder");
}

TEST_CASE("Ctrl-C shows the ways that have been served") {
  if (lacks_bench()) return;
  const File in = scratch(), out = scratch(), err = scratch();
  const pid_t pid = start(kBench,
                          {"--shape", "tiny", "--threads", "1", "--rate", "5", "--requests", "2", "--lengths", "4,4",
                           "--repeat", "1000", "--json"},
                          fileno(in.get()), fileno(out.get()), fileno(err.get()));
  for (int i = 0; i < 3000 && lseek(fileno(out.get()), 0, SEEK_END) == 0; ++i) usleep(10000);
  kill(pid, SIGINT);
  CHECK(wait_for(pid) == 130);
  CHECK(content_of(err.get()) == "tessera-bench: interrupted\n");
  CHECK(content_of(out.get()).starts_with("{\"test\":\"trace\""));
}

TEST_CASE("the hour of Azure's conversations is read and served") {
  const std::string path = kShared + "/traces/azure-2023-conversation.csv";
  if (lacks_bench() || lacks(path, "../shared/traces/azure-2023-conversation.csv")) return;
  const auto lines =
      lines_of(tiny({"--trace", path, "--scale", "64", "--speed", "1000", "--requests", "40", "--json"}));
  CHECK(lines.at(0).at("requests") == 40);
  CHECK(lines.at(0).at("refused") == 0);
}

}  // namespace test_bench_trace
