// tessera-cost: turns prices of machines and speeds of models into prices of tokens, and says how much tiers, caches and drafts save.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line.hpp"
#include "machine_options.hpp"
#include "options.hpp"
#include "report.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

namespace {

constexpr const char* kProgram = "tessera-cost";
constexpr int kFailure = 1, kUsage = 2;

int usage(std::string_view message) {
  tessera::tool::complain(kProgram, fmt::format("{} (--help tells more)", message));
  return kUsage;
}

int fail(std::string_view message) {
  tessera::tool::complain(kProgram, message);
  return kFailure;
}

int run(int argc, char** argv) {
  using namespace tessera;
  cost::Options options;
  CLI::App app{"Computes what tokens, requests and months cost, from the prices of machines and the speeds of models.", kProgram};
  cost::add_options(app, options);
  tool::add_version(app, kProgram);
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return tool::output_arrived() ? 0 : fail(tool::kLostOutput);
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }
  const auto scenario = cost::scenario_of(options);
  if (!scenario) return options.file.empty() ? usage(scenario.error().text()) : fail(scenario.error().text());
  const auto output = options.json ? cost::json_of(*scenario) : cost::text_of(*scenario);
  if (!output) return options.file.empty() ? usage(output.error().text()) : fail(output.error().text());
  std::fwrite(output->data(), 1, output->size(), stdout);
  return tool::output_arrived() ? 0 : fail(tool::kLostOutput);
}

}  // namespace

int main(int argc, char** argv) {
  tessera::tool::Program program(argc, argv);
  try {
    return run(program.argc(), program.argv());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
