#include "measure/serving.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/session.hpp>
#include <tessera/version.hpp>

#include "engine_setup.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "measure/replay.hpp"
#include "serving/serving_plot.hpp"
#include "show/plot_file.hpp"
#include "show/report.hpp"
#include "show/status_line.hpp"
#include "terminal_text.hpp"

namespace tessera::bench {
namespace {

// Returns the tokens of context that the longest request of the trace needs.
std::uint32_t context_of(const tool::Trace& trace) {
  std::uint32_t most = 0;
  for (const tool::TraceRequest& request : trace.requests) most = std::max(most, request.prompt + request.output);
  return most + 1;
}

// Warms up: computes a few tokens, so that all weights have been touched and their pages are mapped.
void warm_up(const Engine& engine) {
  Session session = value(engine.session());
  const std::vector<Token> tokens(std::min<std::uint32_t>(engine.plan().context - 1, 16), 1);
  if (const auto done = session.append(tokens); !done) fail(done.error());
}

}  // namespace

void serve_trace(const Options& options) {
  const tool::ServingOptions& serving = options.serving;
  PlotFile plot(options.plot);
  StatusLine status;
  const tool::Trace trace = value(tool::trace_of(serving));
  Options sized = options;
  sized.trace_context = context_of(trace);
  const auto model = open_model(sized);
  plot.check_against(options.model);
  // As in a server, requests longer than the model's own context are refused.
  const Plan plan = value(Engine::plan(*model, {.tokenizer = TokenizerUse::none}));
  sized.trace_context = std::min(sized.trace_context, plan.context);
  const Engine engine = load_engine(*model, sized, status);
  throw_if_interrupted();
  warm_up(engine);
  const Subject setting = subject_of(*model, engine, options);
  const std::string name = tool::shown(trace.name) + (serving.scale == 1.0 ? "" : fmt::format(", lengths / {}", serving.scale));
  if (!options.json) {
    print(heading(setting) + fmt::format("{:<10}{}: {} requests in {:.3g} s\n\n", "requests", name, trace.requests.size(), trace.seconds()));
  }

  const double ideal = tool::ideal_prefix_hit(trace);
  std::vector<tool::ServingFigures> all;
  const auto run = [&](Batching batching, const PolicyPtr& policy) {
    ReplayOptions how{.limits = serving.limits, .policy = policy, .max_waiting = serving.max_waiting, .level = serving.level};
    how.limits.batching = batching;
    tool::ServingFigures figures = replay(engine, trace, how, [&](std::size_t ended) {
      status.show(fmt::format("{}, {}: {} of {} requests", tool::to_string(batching), policy->name(), ended, trace.requests.size()));
    });
    status.clear();
    figures.test = "trace";
    figures.batching = tool::to_string(batching);
    figures.policy = policy->name();
    figures.prefix_ideal = ideal;
    if (options.json) print(tool::to_json(figures).dump() + "\n");
    all.push_back(std::move(figures));
  };
  const auto finish = [&] {
    status.clear();
    if (!options.json) print(tool::to_text(all));
    if (!plot.wanted()) return;
    plot.write(tool::serving_svg(fmt::format("{}, {}: {}", setting.shape, setting.format, name),
                                 fmt::format("{}, {} threads; tessera {}; {} requests in {:.3g} s", setting.machine, setting.threads,
                                             version(), trace.requests.size(), trace.seconds()),
                                 all));
  };
  try {
    for (std::uint32_t round = 0; round < options.repeat; ++round) {
      for (const Batching batching : serving.batchings) {
        for (const PolicyPtr& policy : serving.policies) run(batching, policy);
      }
    }
  } catch (const Interrupted&) {
    finish();
    throw;
  }
  finish();
}

}  // namespace tessera::bench
