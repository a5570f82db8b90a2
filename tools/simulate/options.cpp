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
  tessera-simulate --rate 3 --requests 10000 --prompt 300 --output 100
  tessera-simulate --trace AzureLLMInferenceTrace_conv.csv --scale 16 --policy fcfs,shortest
  tessera-simulate --trace mooncake.jsonl --replicas 16 --router prefix --kv-per-token 128KiB --kv-budget 20GiB

The costs are those of a step, in seconds: fixed, for each output (a row whose logits are wanted), for each of the
first 16 rows, for each row beyond, and for each key that a row sees.
)";

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.footer(kFooter);
  const auto from = "Requests";
  app.add_option("--trace", o.trace, "A file of arrivals: Azure's CSV or Mooncake's JSON lines")->group(from);
  app.add_option("--rate", o.made_up.rate, "Without a trace: requests a second, a Poisson process")
      ->group(from)->check(CLI::Range(1e-6, 1e9));
  app.add_option("--prompt", o.made_up.prompt, "  tokens of a prompt on average")->group(from)->check(CLI::Range(1.0, 1e7));
  app.add_option("--output", o.made_up.output, "  tokens drawn on average")->group(from)->check(CLI::Range(1.0, 1e7));
  app.add_option("--seed", o.made_up.seed, "  what they follow from")->group(from);
  app.add_option("--requests", o.most, "The first N of a trace, or as many made up (1000)")->group(from);
  app.add_option("--scale", o.scale, "All lengths divided by it")->group(from)->check(CLI::Range(1e-3, 1e6));
  app.add_option("--speed", o.speed, "All times between arrivals divided by it")->group(from)->check(CLI::Range(1e-6, 1e6));

  const auto how = "Scheduling";
  app.add_option("--policy", o.policies, "Side by side: fcfs, priority, shortest, deadline, fair, prefix")
      ->group(how)->delimiter(',');
  app.add_option("--batching", o.batchings, "Side by side: continuous, dynamic, static")->group(how)->delimiter(',');
  app.add_option("--step-ms", o.step_ms, "Budget of a step in which requests decode")->group(how)->check(CLI::Range(1e-3, 1e6));
  app.add_option("--step-rows", o.limits.rows, "Rows of a step at most")->group(how)->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-running", o.limits.max_running, "Requests at once")->group(how)->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-waiting", o.max_waiting, "More are refused; 0: none is")->group(how);
  app.add_option("--max-wait", o.limits.max_wait, "Seconds that a dynamic batch waits to become full")
      ->group(how)->check(CLI::Range(0.0, 1e6));
  app.add_option("--headroom", o.limits.headroom, "Share of the expected tokens for which pages are kept free")
      ->group(how)->check(CLI::Range(0.0, 1.0));

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

  const auto shown = "Output";
  app.add_option("--slo-ttft-ms", o.slo_ttft_ms, "Served well: the first token within this time")->group(shown);
  app.add_option("--slo-tpot-ms", o.slo_tpot_ms, "  and the others, on average")->group(shown);
  app.add_flag("--json", o.json, "An object a line")->group(shown);
}

Result<CostModel> costs_of(const std::string& text) {
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
  return CostModel(costs);
}

PolicyPtr policy_of(std::string_view name) {
  for (PolicyPtr (*make)() : {+[] { return first_come(); }, +[] { return by_priority(); }, +[] { return shortest_first(); },
                              +[] { return earliest_deadline(); }, +[] { return fair_by_tenant(); },
                              +[] { return prefix_first(); }}) {
    PolicyPtr policy = make();
    if (policy->name() == name) return policy;
  }
  return nullptr;
}

std::optional<Batching> batching_of(std::string_view name) noexcept {
  if (name == "continuous") return Batching::continuous;
  if (name == "dynamic") return Batching::dynamic;
  if (name == "static") return Batching::fixed;
  return std::nullopt;
}

}  // namespace tessera::simulate
