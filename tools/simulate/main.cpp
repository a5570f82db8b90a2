// tessera-simulate: what a workload would be like on engines of given costs, with the scheduler's own plans.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "command_line.hpp"
#include "options.hpp"
#include "signals.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;
using namespace tessera::simulate;

constexpr int kFailure = 1, kUsage = 2, kInterrupted = 130;
constexpr std::uint64_t kMadeUpRequests = 1000;

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

Result<tool::Trace> trace_of(const Options& options) {
  if (options.trace.empty()) {
    tool::MadeUpTrace how = options.made_up;
    how.requests = options.most != 0 ? options.most : kMadeUpRequests;
    tool::Trace trace = tool::make_trace(how);
    tool::scale(trace, options.scale, options.speed, 0);
    return trace;
  }
  auto trace = tool::read_trace(options.trace);
  if (trace) tool::scale(*trace, options.scale, options.speed, options.most);
  return trace;
}

int run(const Options& options) {
  const auto router = parse_router(options.router);
  if (!router) return usage(fmt::format("--router {}: there are round-robin, least-work and prefix", options.router));
  const auto costs = costs_of(options.costs);
  if (!costs) return usage(costs.error().message());
  for (const std::string& name : options.policies) {
    if (policy_of(name) == nullptr) {
      return usage(fmt::format("--policy {}: there are fcfs, priority, shortest, deadline, fair and prefix", name));
    }
  }
  for (const std::string& name : options.batchings) {
    if (!batching_of(name)) return usage(fmt::format("--batching {}: there are continuous, dynamic and static", name));
  }
  if (options.kv_budget != 0 && options.kv_per_token == 0) return usage("--kv-budget needs --kv-per-token");

  const auto trace = trace_of(options);
  if (!trace) return fail(trace.error().text());
  const double ideal = tool::ideal_prefix_hit(*trace);
  ReplicaOptions how{.costs = *costs,
                     .pages = {.page_tokens = options.page_tokens,
                               .groups = {{.page_bytes = options.kv_per_token * options.page_tokens}}},
                     .kv_budget = options.kv_budget,
                     .file_rate = options.file_rate,
                     .limits = options.limits,
                     .policy = nullptr,
                     .max_waiting = options.max_waiting};
  how.limits.seconds = options.step_ms / 1e3;
  const tool::ServiceLevel level{.ttft = options.slo_ttft_ms / 1e3, .tpot = options.slo_tpot_ms / 1e3};
  if (!options.json) {
    print(fmt::format("{}: {} requests in {:.0f} s, {} replica{}{}\n", tool::shown(trace->name), trace->requests.size(),
                      trace->seconds(), options.replicas, options.replicas == 1 ? "" : "s, ",
                      options.replicas == 1 ? "" : to_string(*router)));
  }
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  std::vector<tool::ServingFigures> all;
  for (const std::string& batching : options.batchings) {
    for (const std::string& policy : options.policies) {
      how.limits.batching = *batching_of(batching);
      how.policy = policy_of(policy);
      auto figures = serve(*trace, how, options.replicas, *router, level, [&](double share) {
        if (terminal) fmt::print(stderr, "\r{} {}: {:3.0f} %\033[K", batching, policy, 100 * share);
        return interrupted == 0;
      });
      if (terminal) fmt::print(stderr, "\r\033[K");
      if (!figures) return kInterrupted;
      figures->test = "simulate";
      figures->trace = trace->name;
      figures->batching = batching;
      figures->policy = policy;
      figures->router = to_string(*router);
      figures->replicas = options.replicas;
      figures->prefix_ideal = ideal;
      if (options.json) print(tool::to_json(*figures).dump() + "\n");
      all.push_back(std::move(*figures));
    }
  }
  if (!options.json) print(tool::to_text(all));
  return tool::output_arrived() || errno == EPIPE ? 0 : fail(tool::kLostOutput);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  tool::on_signal(SIGINT, [](int) { interrupted = 1; });
  try {
    Options options;
    CLI::App app{"What a workload would be like on engines of given costs: times, goodput, prefix hits, preemptions.",
                 "tessera-simulate"};
    add_options(app, options);
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
