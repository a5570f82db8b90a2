// tessera-cost as a user runs it.
#include "cli/program.hpp"

namespace test_cost_tool {

using namespace tessera::tests::cli;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-cost";

Outcome cost(const Args& args) { return run_program(kTool, args); }

}  // namespace

TEST_CASE("the tool answers the questions of its documentation", "[cost]") {
  if (lacks(kTool, "tessera-cost (not built)")) return;
  CHECK_THAT(cost({"--tiers", "60:0.2,30:1,10:10"}).out, Catch::Contains("85.8%") && Catch::Contains("A million tokens: $1.420"));
  CHECK_THAT(cost({"--save", "cached=25,routed=35,compressed=20"}).out, Catch::Contains("61.0%"));
  CHECK_THAT(cost({"--save", "cached=25,routed=35,compressed=20@prompt", "--request", "400,600"}).out, Catch::Contains("55.1%"));
  const Outcome drafts = cost({"--hour", "4", "--speculate", "step=40,draft=5,a=0.75,k=4"});
  CHECK(drafts.status == 0);
  CHECK_THAT(drafts.out, Catch::Contains("2.03 times as fast") && Catch::Contains("$21.85"));
  CHECK_THAT(cost({"--hour", "3.6", "--answer-rate", "1000", "--json"}).out, Catch::Contains("\"answer_million\":1.0"));
}

TEST_CASE("a command line that makes no sense ends with status 2 and a line that says what to do", "[cost]") {
  if (lacks(kTool, "tessera-cost (not built)")) return;
  const std::vector<std::pair<Args, std::string>> all = {{{}, "give a FILE"},
                                                         {{"--tiers", "60"}, "PERCENT:PRICE"},
                                                         {{"--tiers", "60:1"}, "add up to 60 percent"},
                                                         {{"--save", "cached"}, "NAME=PERCENT"},
                                                         {{"--save", "x=5@answer"}, "NAME=PERCENT"},
                                                         {{"--hour", "1", "--speculate", "stop=4"}, "step=MS"},
                                                         {{"--hour", "1"}, "tokens a second"},
                                                         {{"--hour", "1", "--answer-rate", "1", "--memory", "x"}, "--memory"},
                                                         {{"--request", "5", "--save", "a=1"}, "PROMPT,ANSWER"},
                                                         {{"--nothing"}, "there is no option"}};
  for (const auto& [args, says] : all) {
    const Outcome outcome = cost(args);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Contains(says));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  const Outcome none = cost({"no-such-file.json"});
  CHECK(none.status == 1);
  CHECK_THAT(none.err, Catch::Contains("no-such-file.json: cannot read this file"));
}

}  // namespace test_cost_tool
