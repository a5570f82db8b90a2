// What all five programs have in common on their command lines: one name, one message, one exit status.
#include <sched.h>

#include <string>
#include <vector>

#include <tessera/version.hpp>

#include "program.hpp"

#include "catch.hpp"

namespace test_cli_machine_options {

using namespace tessera::tests::cli;

namespace {

struct Program {
  const char* name;
  Args before;        // what it needs besides
  bool has_threads, has_isa;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> list = {
      {"generate", {"-m", kTiny, "-p", "a", "-n", "1"}, true, true},
      {"tessera-bench", {"-m", kTiny}, true, true},
      {"tessera-inspect", {kTiny}, false, false},
      {"tessera-quality", {kTiny, "tokens"}, true, true},
      {"tessera-quantize", {kTiny, "/nowhere/out.gguf", "Q8_0"}, true, false},
  };
  return list;
}

Outcome run_with(const Program& program, Args more) {
  Args args = program.before;
  args.insert(args.end(), more.begin(), more.end());
  return run_program(TESSERA_BIN_DIR "/" + std::string(program.name), args);
}

// Those that are built; what is not is told.
std::vector<Program> built_programs() {
  std::vector<Program> built;
  for (const Program& program : programs()) {
    if (!lacks(TESSERA_BIN_DIR "/" + std::string(program.name), std::string(program.name) + " (not built)")) built.push_back(program);
  }
  return built;
}

void expect_usage(const Outcome& got, const std::string& program, const std::string& words) {
  CHECK(got.status == 2);
  CHECK(got.out.empty());
  CHECK(got.err.starts_with(program + ": "));
  CHECK(got.err.find('\n') == got.err.size() - 1);
  CHECK_THAT(got.err, Catch::Contains(words));
}

}  // namespace

TEST_CASE("every program tells its version and helps") {
  for (const Program& program : built_programs()) {
    CAPTURE(program.name);
    const Outcome version = run_program(TESSERA_BIN_DIR "/" + std::string(program.name), {"--version"});
    CHECK(version.status == 0);
    CHECK(version.out == std::string(program.name) + " " + std::string(tessera::version()) + "\n");
    CHECK(version.err.empty());
    const Outcome help = run_program(TESSERA_BIN_DIR "/" + std::string(program.name), {"--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Catch::Contains("--version") && Catch::Contains("Exit status"));
    if (program.has_threads) CHECK_THAT(help.out, Catch::Contains("--threads N"));
    if (program.has_isa) CHECK_THAT(help.out, Catch::Contains("--isa SET"));
  }
}

TEST_CASE("a wrong number of threads, instruction set or option is an error of usage") {
  for (const Program& program : built_programs()) {
    CAPTURE(program.name);
    expect_usage(run_with(program, {"--no-such-option"}), program.name, "--no-such-option");
    if (program.has_threads) {
      for (const char* threads : {"-1", "4097", "two", "1.5"}) {
        CAPTURE(threads);
        expect_usage(run_with(program, {"--threads", threads}), program.name,
                     "--threads: \"" + std::string(threads) + "\" is not a whole number from 0 to 4096");
      }
    }
    if (program.has_isa) {
      expect_usage(run_with(program, {"--isa", "mmx"}), program.name, "--isa: \"mmx\" is not one of auto|baseline|");
    }
  }
}

TEST_CASE("a sliding window is what the engine's option is") {
  if (lacks_program()) return;
  const auto generated = [](Args more) {
    Args args = {"-m", kTiny, "--prompt-ids", "1 20 31 42 53 64 75 86 97 8 19 30", "-n", "12", "--greedy", "--ignore-eos",
                 "--print-tokens"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome got = run(args);
    CHECK(got.status == 0);
    return got.out;
  };
  const std::string all = generated({});
  CHECK(generated({"--sliding-window", "0"}) == all);
  CHECK(generated({"--sliding-window", "64"}) == all);
  CHECK(generated({"--sliding-window", "2"}) != all);
  const Outcome wrong = run({"-m", kTiny, "-p", "a", "--sliding-window", "-1"});
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, Catch::Contains("--sliding-window"));
}

TEST_CASE("more threads than processors are used, with a warning; as many as there are by default") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);  // of the programs that are run, too
  const Program generate = programs().front();
  const Outcome two = run_with(generate, {"--greedy", "-t", "2"}), by_default = run_with(generate, {"--greedy"});
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(two.status == 0);
  CHECK_THAT(two.err, Catch::Contains("warning: --threads 2: this process may use 1 processor,"));
  CHECK(by_default.status == 0);
  CHECK_THAT(by_default.err, !Catch::Contains("warning"));
  CHECK(two.out == by_default.out);
}

}  // namespace test_cli_machine_options
