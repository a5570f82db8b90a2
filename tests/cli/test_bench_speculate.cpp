// tessera-bench --speculate: its figures are there, and agree with the formula and each other.
#include "program.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace test_bench_speculate {

using namespace tessera::tests::cli;

namespace {

using Json = nlohmann::json;

const std::string kBench = TESSERA_BIN_DIR "/tessera-bench";

bool lacks_bench() { return lacks(kBench, "tessera-bench (not built)"); }

Outcome bench(const Args& more) {
  Args args = {"--shape", "tiny", "--repeat", "1", "--threads", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return run_program(kBench, args);
}

}  // namespace

TEST_CASE("--speculate gives the formula's figures from measured costs") {
  if (lacks_bench()) return;
  const Outcome got = bench({"--speculate", "-b", "1,3", "--acceptance", "0,0.75,1", "--draft-max", "3", "--draft-ms", "0.01", "-n", "12", "--batch-depth", "5", "--json"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  std::istringstream stream(got.out);
  std::size_t lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) {
    const Json json = Json::parse(line);
    INFO(line);
    CHECK(json["test"] == "speculate");
    CHECK(json["batch"] == (lines < 3 ? 1 : 3));
    const double a = json["acceptance"], tokens = json["tokens_a_cycle"], cycle = json["cycle_ms"];
    CHECK(a == (lines % 3 == 0 ? 0.0 : lines % 3 == 1 ? 0.75 : 1.0));
    const int k = json["drafts"];
    CHECK(k >= 1);
    CHECK(k <= 3);
    double expected = 0.0;
    for (int i = 0; i <= k; ++i) expected += std::pow(a, i);
    CHECK(tokens == Approx(expected));
    CHECK(cycle == Approx(json["verify_ms"].get<double>() + k * 0.01 * json["batch"].get<double>()));
    CHECK(json["speedup"].get<double>() == Approx(tokens * json["target_ms"].get<double>() / cycle));
    CHECK(json["measured_speedup"].get<double>() > 0.0);
    const std::size_t drafted = json["drafted"], accepted = json["accepted"];
    CHECK(accepted <= drafted);
    if (a == 0.0) CHECK(accepted == 0);
    if (a == 1.0) CHECK(accepted == drafted);
  }
  CHECK(lines == 6);
  const Outcome table = bench({"--speculate", "-b", "1", "--acceptance", "0.5", "-n", "6"});
  CHECK(table.status == 0);
  CHECK(table.out.find("break-even") != std::string::npos);
  CHECK(table.out.find("with 0.50 of the drafts right, it ") != std::string::npos);
}

TEST_CASE("--speculate --mtp has drafts made by the model's head, and measures that") {
  if (lacks_bench()) return;
  const std::string model = TESSERA_SOURCE_DIR "/tests/golden/data/mtp/trained.gguf";
  const Outcome got = run_program(kBench, {"-m", model, "--repeat", "1", "--threads", "2", "--speculate", "--mtp", "-b", "1,3", "--acceptance",
                                           "0.75", "--draft-max", "3", "-n", "12", "--batch-depth", "5", "--json"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  std::istringstream stream(got.out);
  std::size_t lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) {
    const Json json = Json::parse(line);
    INFO(line);
    const double draft = json["draft_ms"], batch = json["batch"], drafts = json["drafts"];
    CHECK((draft > 0.0 || json["drafted"] == 0));  // none, where the scheduler finds that they do not pay
    CHECK(json["cycle_ms"].get<double>() == Approx(json["verify_ms"].get<double>() + drafts * draft * batch));
  }
  CHECK(lines == 2);
  const Outcome none = bench({"--speculate", "--mtp", "-b", "1", "-n", "6"});
  CHECK(none.status == 1);
  CHECK(none.err.find("no MTP head") != std::string::npos);
}

TEST_CASE("--speculate refuses what does not go with it") {
  if (lacks_bench()) return;
  for (const Args& args : {Args{"--acceptance", "0.5"}, Args{"--speculate", "--acceptance", "1.5"}, Args{"--speculate", "--acceptance", "0.5,"},
                           Args{"--speculate", "--draft-max", "65"}, Args{"--speculate", "--draft-ms", "-1"}, Args{"--speculate", "-p", "12"},
                           Args{"--speculate", "--rate", "3"}, Args{"--mtp"}, Args{"--speculate", "--mtp", "--draft-ms", "1"}}) {
    const Outcome got = bench(args);
    INFO(args.back() << ": " << got.err);
    CHECK(got.status == 2);
    CHECK(got.out.empty());
    CHECK(got.err.starts_with("tessera-bench: "));
    CHECK(got.err.find('\n') == got.err.size() - 1);
  }
}

}  // namespace test_bench_speculate
