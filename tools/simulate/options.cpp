#include "options.hpp"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace tessera::simulate {
namespace {

constexpr std::array<std::pair<const char*, double CostModel::Costs::*>, 5> kCosts = {{
    {"fixed", &CostModel::Costs::fixed},
    {"output", &CostModel::Costs::output},
    {"few_rows", &CostModel::Costs::few_rows},
    {"many_rows", &CostModel::Costs::many_rows},
    {"key", &CostModel::Costs::key},
}};

constexpr const char* kFooter = R"(Examples:
  tessera-simulate --rate 3 --requests 10000 --lengths 300,100
  tessera-simulate --trace AzureLLMInferenceTrace_conv.csv --scale 16 --policy fcfs,shortest
  tessera-simulate --trace mooncake.jsonl --replicas 16 --router prefix --kv-per-token 128KiB --kv-budget 20GiB

The costs are those of a step, in seconds: fixed, for each output (a row whose logits are wanted), for each of the
first 16 rows, for each row beyond, and for each key that a row sees.
)";

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.footer(kFooter);
  tool::add_trace_options(app, o.serving);
  tool::add_scheduling_options(app, o.serving);

  const auto machine = "The machine";
  app.add_option("--costs", o.costs, "As fixed=2e-3,output=1e-4,few_rows=1e-4,many_rows=2e-3,key=1e-8")->group(machine);
  app.add_option("--kv-per-token", o.kv_per_token, "Bytes of keys and values of a token")
      ->group(machine)->transform(CLI::AsSizeValue(false));
  app.add_option("--kv-budget", o.kv_budget, "Bytes of KV pages; 0: as many as are wanted")
      ->group(machine)->transform(CLI::AsSizeValue(false));
  app.add_option("--page-tokens", o.page_tokens, "Tokens of a page")->group(machine)->check(CLI::Range(1, 4096));
  app.add_option("--file-rate", o.file_rate, "Bytes a second to the file of preempted requests; 0: there is none")
      ->group(machine)->check(CLI::Range(0.0, 1e15));
  app.add_option("--replicas", o.replicas, "Engines")->group(machine)->check(CLI::Range(1, 100000));
  app.add_option("--router", o.router, "Who gets a request: round-robin, least-work, prefix")->group(machine);

  tool::add_level_options(app, o.serving);
  app.add_option("--plot", o.plot, "Draw the times, as SVG")->group("Output")->type_name("FILE");
  app.add_flag("--json", o.json, "An object a line")->group("Output");
}

Result<CostModel::Costs> costs_of(const std::string& text) {
  CostModel::Costs costs;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string_view digits = equals == part.npos ? "" : part.substr(equals + 1);
    double value = -1.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const auto* cost = std::ranges::find(kCosts, name, &std::pair<const char*, double CostModel::Costs::*>::first);
    if (cost == kCosts.end() || error != std::errc() || end != digits.data() + digits.size() || !(value >= 0.0)) {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("--costs: '{}' is none of fixed, output, few_rows, many_rows, key with a number of seconds", part));
    }
    costs.*(cost->second) = value;
  }
  return costs;
}

}  // namespace tessera::simulate
