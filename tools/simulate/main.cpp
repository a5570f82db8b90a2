// tessera-simulate: simulates serving a workload, on engines with given costs, with the scheduler's own planner.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "command_line.hpp"
#include "machine_options.hpp"
#include "options.hpp"
#include "serving/serving_plot.hpp"
#include "signals.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;
using namespace tessera::simulate;

constexpr int kFailure = 1, kUsage = 2, kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

int usage(std::string_view message) {
  tool::complain("tessera-simulate", fmt::format("{} (--help tells more)", message));
  return kUsage;
}

int fail(std::string_view message) {
  tool::complain("tessera-simulate", message);
  return kFailure;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int run(const Options& options) {
  const auto router = parse_router(options.router);
  if (!router) return usage(fmt::format("--router {}: there are round-robin, least-work and prefix", options.router));
  const auto costs = costs_of(options.costs);
  if (!costs) return usage(costs.error().message());
  const auto ranks = ranks_of(options);
  if (!ranks) return usage(ranks.error().message());
  if (options.kv_budget != 0 && options.kv_per_token == 0) return usage("--kv-budget needs --kv-per-token");

  const tool::ServingOptions& serving = options.serving;
  const auto trace = tool::trace_of(serving);
  if (!trace) return fail(trace.error().text());
  const double ideal = tool::ideal_prefix_hit(*trace);
  ReplicaOptions how{.costs = CostModel(costs_on_ranks(*costs, ranks->shape, ranks->split, ranks->count, ranks->link)),
                     .pages = {.page_tokens = options.page_tokens,
                               .groups = {{.page_bytes = options.kv_per_token * options.page_tokens}}},
                     .kv_budget = options.kv_budget * ranks->count,
                     .file_rate = options.file_rate,
                     .limits = serving.limits,
                     .policy = nullptr,
                     .max_waiting = serving.max_waiting};
  if (!options.json) {
    print(fmt::format("{}: {} requests in {:.0f} s, {} replica{}{}\n", tool::shown(trace->name), trace->requests.size(),
                      trace->seconds(), options.replicas, options.replicas == 1 ? "" : "s, ",
                      options.replicas == 1 ? "" : to_string(*router)));
    if (ranks->count > 1) {
      const Exchanges exchanges = exchanges_of(ranks->shape, ranks->split, ranks->count);
      print(fmt::format("{} ranks by {}: {:.0f} exchanges a step, {:.1f} KB a row and {:.1f} KB an output\n", ranks->count,
                        options.rank_split, exchanges.count, exchanges.row_bytes / 1e3, exchanges.output_bytes / 1e3));
    }
  }
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  std::vector<tool::ServingFigures> all;
  for (const Batching batching : serving.batchings) {
    for (const PolicyPtr& policy : serving.policies) {
      how.limits.batching = batching;
      how.policy = policy;
      auto figures = serve(*trace, how, options.replicas, *router, serving.level, [&](double share) {
        if (terminal) fmt::print(stderr, "\r{} {}: {:3.0f} %\033[K", tool::to_string(batching), policy->name(), 100 * share);
        return interrupted == 0;
      });
      if (terminal) fmt::print(stderr, "\r\033[K");
      if (!figures) return kInterrupted;
      figures->test = "simulate";
      figures->batching = tool::to_string(batching);
      figures->policy = policy->name();
      figures->router = to_string(*router);
      figures->replicas = options.replicas;
      figures->prefix_ideal = ideal;
      if (options.json) print(tool::to_json(*figures).dump() + "\n");
      all.push_back(std::move(*figures));
    }
  }
  if (!options.json) print(tool::to_text(all));
  if (!options.plot.empty()) {
    std::ofstream file(options.plot, std::ios::binary);
    file << tool::serving_svg(trace->name, fmt::format("simulated, {} replica(s), {} requests", options.replicas, trace->requests.size()), all);
    if (!file.flush()) return fail(fmt::format("{}: cannot write", options.plot));
  }
  return tool::output_arrived() || errno == EPIPE ? 0 : fail(tool::kLostOutput);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  tool::on_signal(SIGINT, [](int) { interrupted = 1; });
  try {
    Options options;
    CLI::App app{"Simulates a workload on engines of given costs: times, goodput, prefix hits, preemptions.",
                 "tessera-simulate"};
    add_options(app, options);
    tool::add_version(app, "tessera-simulate");
    try {
      tool::parse(app, argc, argv);
    } catch (const CLI::Success& help) {
      app.exit(help);
      return tool::output_arrived() ? 0 : fail(tool::kLostOutput);
    } catch (const CLI::ParseError& error) {
      return usage(error.what());
    }
    return run(options);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
