// A long prompt comes while others decode, on machines whose costs nobody knows beforehand: the plans with a cost model that
// learns from steps of which only this file knows how long they take.
#include <algorithm>
#include <random>
#include <vector>

#include <tessera/unstable/scheduler/plan_step.hpp>

#include "catch.hpp"

namespace test_step_budget {

using namespace tessera;

namespace {

// Reading the weights and multiplying them go on at the same time; what the cost model has as a sum.
struct Machine {
  double read, row, output, key;  // seconds
  [[nodiscard]] double seconds(const StepLoad& load) const {
    return std::max(read, load.rows * row) + load.outputs * output + static_cast<double>(load.keys) * key;
  }
};

struct Waits {
  double idle = 0.0;   // between two tokens, before the prompt comes
  double worst = 0.0;  // while it is computed
  std::size_t steps = 0;
};

Waits serve(const Machine& machine, const StepLimits& limits) {
  std::vector<PlannedRequest> running, waiting;
  CostModel costs;
  StepPlanner planner;
  StepPlan plan;
  std::mt19937 random(7);
  double now = 0.0;
  Waits waits;
  for (std::uint64_t i = 0; i < 8; ++i) waiting.push_back({.id = i, .order = i, .prompt = 64, .expected = 100'000});
  for (int step = 0; step < 4000; ++step) {
    if (step == 100) waiting.push_back({.id = 8, .order = 8, .submitted = now, .prompt = 4096, .expected = 4});
    planner.plan(running, waiting, {.cost = {}, .free = UINT64_MAX / 4}, costs, *first_come(), limits, now, plan);
    StepLoad load;  // as the scheduler counts
    const std::size_t before = running.size();
    for (const auto& part : plan.shares) {
      const bool is_new = part.request >= before;
      if (is_new) running.push_back(waiting[part.request - before]);
      PlannedRequest& request = is_new ? running.back() : running[part.request];
      load.rows += part.rows;
      load.keys += part.rows * request.computed + std::uint64_t{part.rows} * (part.rows + 1) / 2;
      load.outputs += part.rows == request.needed() ? 1 : 0;
      request.drawn += part.rows == request.needed() ? 1 : 0;
      request.computed += part.rows;
    }
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(running.size() - before));
    const double seconds = machine.seconds(load) * (0.95 + static_cast<double>(random() % 1000) / 1e4);  // no two are alike
    costs.observe(load, seconds);
    now += seconds;
    const bool everybody = std::ranges::count_if(running, [](const auto& one) { return one.id < 8 && one.needed() == 1; }) == 8;
    if (everybody && step < 100) waits.idle = std::max(waits.idle, step > 50 ? seconds : 0.0);
    if (step < 100) continue;
    CHECK(everybody);
    waits.worst = std::max(waits.worst, seconds);
    const bool is_done = running.size() == 9 && running.back().drawn > 0;
    if (!is_done) continue;
    waits.steps = static_cast<std::size_t>(step) - 99;
    return waits;
  }
  FAIL("the prompt was never computed");
  return waits;
}

}  // namespace

TEST_CASE("none that decodes waits for a long prompt longer than twice its own time and the budget", "[scheduler]") {
  for (const double read : {0.5e-3, 8e-3, 40e-3, 300e-3}) {
    for (const double share : {0.02, 0.06, 0.25}) {  // of reading the weights, that a row takes
      for (const double key : {0.0, 5e-8, 5e-7}) {
        const StepLimits limits{.seconds = 0.05, .rows = 512};
        const Waits waits = serve({.read = read, .row = share * read, .output = 0.05 * read, .key = key * read / 8e-3}, limits);
        INFO("weights " << read << " s, a row " << share << " of it, a key " << key << ": " << waits.idle << " s idle, " << waits.worst << " s with the prompt, "
                        << waits.steps << " steps");
        CHECK(waits.worst <= 1.05 * (2 * waits.idle + limits.seconds));
        CHECK(waits.steps < 4096 / 3);  // and it does go on
      }
    }
  }
}

}  // namespace test_step_budget
