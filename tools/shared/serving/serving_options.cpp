#include "serving/serving_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tessera::tool {
namespace {

constexpr std::uint64_t kMadeUpRequests = 1000;

constexpr std::array<std::pair<std::string_view, Batching>, 3> kBatchings = {
    {{"continuous", Batching::continuous}, {"dynamic", Batching::dynamic}, {"static", Batching::fixed}}};

PolicyPtr policy_of(const std::string& name) {
  std::string names;
  for (PolicyPtr (*make)() : {+[] { return first_come(); }, +[] { return by_priority(); }, +[] { return shortest_first(); },
                              +[] { return earliest_deadline(); }, +[] { return fair_by_tenant(); },
                              +[] { return prefix_first(); }}) {
    PolicyPtr policy = make();
    if (policy->name() == name) return policy;
    names += fmt::format(" {}", policy->name());
  }
  throw CLI::ValidationError("--policy", fmt::format("\"{}\" is none of{}", name, names));
}

Batching batching_of(const std::string& name) {
  std::string names;
  for (const auto& [known, batching] : kBatchings) {
    if (known == name) return batching;
    names += fmt::format(" {}", known);
  }
  throw CLI::ValidationError("--batching", fmt::format("\"{}\" is none of{}", name, names));
}

// Parses "300,100": the mean tokens of a prompt and of an answer.
void parse_lengths(const std::string& text, MadeUpTrace& into) {
  const char *at = text.data(), *end = at + text.size();
  const auto [comma, error] = std::from_chars(at, end, into.prompt);
  const auto is_length = [](double tokens) { return tokens >= 1.0 && tokens <= 1e7; };
  if (error == std::errc() && is_length(into.prompt) && comma != end && *comma == ',') {
    const auto [stop, second] = std::from_chars(comma + 1, end, into.output);
    if (second == std::errc() && stop == end && is_length(into.output)) return;
  }
  throw CLI::ValidationError("--lengths", fmt::format("\"{}\" is not two numbers of tokens, from 1 on, as 300,100", text));
}

// Adds an option in milliseconds for a value in seconds.
void add_milliseconds(CLI::App& app, const char* name, double& seconds, const std::string& group, const std::string& description) {
  app.add_option_function<double>(name, [&seconds](double ms) { seconds = ms / 1e3; }, description)
      ->group(group)->check(CLI::Range(1e-3, 1e9))->type_name("MS");
}

}  // namespace

void add_trace_options(CLI::App& app, ServingOptions& o) {
  const std::string from(kTraceGroup);
  app.add_option("--trace", o.trace, "A file of arrivals and lengths: Azure's CSV or\nMooncake's JSON lines")
      ->group(from)->type_name("FILE");
  app.add_option("--rate", o.made_up.rate,
                 "Without --trace: the mean number of requests a second, which\narrive at random (a Poisson process)")
      ->group(from)->check(CLI::Range(1e-6, 1e9))->type_name("R");
  app.add_option_function<std::string>(
         "--lengths", [&o](const std::string& text) { parse_lengths(text, o.made_up); },
         "Without --trace: the mean tokens of a prompt and of an answer\n(exponentially distributed). Default: 256,64")
      ->group(from)->type_name("P,A");
  app.add_option("--seed", o.made_up.seed, "Without --trace: the seed of the random numbers. Default: 1")->group(from)->type_name("N");
  app.add_option("--requests", o.most, "Serve only the first N requests of the file. Without --trace:\n"
                                       "the number of requests. Default: all, or 1000")
      ->group(from)->type_name("N");
  app.add_option("--scale", o.scale, "Divide all lengths by X")->group(from)->check(CLI::Range(1e-3, 1e6))->type_name("X");
  app.add_option("--speed", o.speed, "Divide all times between arrivals by X")
      ->group(from)->check(CLI::Range(1e-6, 1e6))->type_name("X");
}

void add_scheduling_options(CLI::App& app, ServingOptions& o) {
  const std::string how(kSchedulingGroup);
  app.add_option_function<std::vector<std::string>>(
         "--policy",
         [&o](const std::vector<std::string>& names) {
           o.policies.clear();
           for (const std::string& name : names) o.policies.push_back(policy_of(name));
         },
         "The scheduler's policies to compare: fcfs, priority, shortest,\ndeadline, fair, prefix. Default: fcfs")
      ->group(how)->delimiter(',')->type_name("NAME,...");
  app.add_option_function<std::vector<std::string>>(
         "--batching",
         [&o](const std::vector<std::string>& names) {
           o.batchings.clear();
           for (const std::string& name : names) o.batchings.push_back(batching_of(name));
         },
         "The kinds of batching to compare: continuous, dynamic, static\nDefault: continuous")
      ->group(how)->delimiter(',')->type_name("NAME,...");
  app.add_option("--max-running", o.limits.max_running, "The most requests that are served at once (the size of a\nbatch). Default: 64")
      ->group(how)->check(CLI::Range(1, 1 << 20))->type_name("N");
  app.add_option("--max-waiting", o.max_waiting,
                 "The most requests that wait; more are refused\nDefault: no limit")->group(how)->type_name("N");
  app.add_option("--max-wait", o.limits.max_wait, "The most seconds that a dynamic batch waits to become full\nDefault: 0.1")
      ->group(how)->check(CLI::Range(0.0, 1e6))->type_name("S");
  add_milliseconds(app, "--step-ms", o.limits.seconds, how, "The most milliseconds of a step in which requests decode\nDefault: 50");
  app.add_option("--step-rows", o.limits.rows, "The most rows of a step. Default: 512")
      ->group(how)->check(CLI::Range(1, 1 << 16))->type_name("N");
  app.add_option("--headroom", o.limits.headroom,
                 "A request is admitted if there are pages for its prompt, and\n"
                 "for this share (0 to 1) of the tokens that it and the running\n"
                 "requests are expected to write. Default: 0.25")
      ->group(how)->check(CLI::Range(0.0, 1.0))->type_name("X");
  app.add_option("--first-share", o.limits.first_share,
                 "The share (0 to 1) of a step's rows for prompts that the first\n"
                 "prompt keeps while shorter prompts overtake it. 1: no prompt\novertakes another. Default: 0.25")
      ->group(how)->check(CLI::Range(1e-3, 1.0))->type_name("X");
}

void add_level_options(CLI::App& app, ServingOptions& o) {
  const std::string level(kLevelGroup);
  add_milliseconds(app, "--slo-ttft-ms", o.level.ttft, level, "The most milliseconds to the first token. Default: 2000");
  add_milliseconds(app, "--slo-tpot-ms", o.level.tpot, level, "The most milliseconds for each further token, on average\nDefault: 200");
}

Result<Trace> trace_of(const ServingOptions& options) {
  MadeUpTrace how = options.made_up;
  how.requests = options.most != 0 ? options.most : kMadeUpRequests;
  auto trace = options.trace.empty() ? Result<Trace>(make_trace(how)) : read_trace(options.trace);
  if (!trace) return trace;
  scale(*trace, options.scale, options.speed, options.most);
  for (TraceRequest& request : trace->requests) {
    if (std::isfinite(request.deadline)) continue;
    request.deadline = request.arrival + options.level.ttft + options.level.tpot * request.output;
  }
  return trace;
}

std::string_view to_string(Batching batching) noexcept {
  for (const auto& [name, known] : kBatchings) {
    if (known == batching) return name;
  }
  return "?";
}

}  // namespace tessera::tool
