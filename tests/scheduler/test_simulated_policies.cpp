// What policies promise, over whole workloads: the scheduler's plans on simulated engines.
#include "cluster.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "catch.hpp"

namespace test_simulated_policies {

using namespace tessera;
using namespace tessera::simulate;

namespace {

ReplicaOptions replica_options(PolicyPtr policy) {
  return {.costs = CostModel({.fixed = 5e-3, .output = 1e-4, .few_rows = 1e-4, .many_rows = 3e-4, .key = 1e-8}),
          .pages = {.page_tokens = 16, .groups = {{.page_bytes = 16}}},
          .limits = {.seconds = 0.03, .rows = 128, .max_running = 8},
          .policy = std::move(policy)};
}

tool::TraceRequest arriving(double when, std::uint32_t prompt, std::uint32_t output, std::uint32_t tenant = 0) {
  return {.arrival = when, .prompt = prompt, .output = output, .tenant = tenant, .blocks = {}};
}

// Requests of a tenant in `seconds`, `rate` a second, evenly.
void add_stream(tool::Trace& trace, std::uint32_t tenant, double rate, double seconds, std::uint32_t prompt,
                std::uint32_t output) {
  for (double now = 0.001 * tenant; now < seconds; now += 1.0 / rate) {
    trace.requests.push_back(arriving(now, prompt, output, tenant));
  }
}

// Runs a trace for `seconds` and says what each tenant has been served.
std::vector<double> served(tool::Trace trace, PolicyPtr policy, double seconds) {
  std::ranges::stable_sort(trace.requests, {}, &tool::TraceRequest::arrival);
  Replica replica(replica_options(std::move(policy)), trace.block_tokens, {});
  for (const auto& request : trace.requests) {
    replica.run_until(request.arrival);
    replica.submit(request);
  }
  replica.run_until(seconds);
  std::vector<double> service;
  for (const auto& [name, tenant] : replica.tenants().all()) service.push_back(tenant.service);
  return service;
}

// Times from arrival to end of one tenant's requests.
Histogram ends_of(tool::Trace trace, PolicyPtr policy, std::uint32_t tenant) {
  std::ranges::stable_sort(trace.requests, {}, &tool::TraceRequest::arrival);
  for (auto& request : trace.requests) request.deadline = request.tenant == tenant ? 0.0 : 1e9;
  Histogram all;
  Replica replica(replica_options(std::move(policy)), trace.block_tokens, {});
  replica.on_finished([&](const tool::TraceRequest& request, double end) {
    if (request.tenant == tenant) all.add(end - request.arrival);
  });
  for (const auto& request : trace.requests) {
    replica.run_until(request.arrival);
    replica.submit(request);
  }
  replica.run_to_the_end();
  return all;
}

}  // namespace

TEST_CASE("a tenant that floods takes no more than its share, and another is served as if alone", "[scheduler]") {
  tool::Trace both_flood;
  add_stream(both_flood, 0, 200, 60, 60, 30);
  add_stream(both_flood, 1, 20, 60, 60, 30);
  const auto fair = served(both_flood, fair_by_tenant(), 60);
  REQUIRE(fair.size() == 2);
  CHECK(std::abs(fair[0] / fair[1] - 1.0) < 0.05);
  const auto unfair = served(both_flood, first_come(), 60);
  CHECK(unfair[0] > 3 * unfair[1]);  // or there would be nothing to promise

  tool::Trace one_floods, alone;
  add_stream(one_floods, 0, 200, 30, 60, 30);
  add_stream(one_floods, 1, 2, 30, 60, 30);
  add_stream(alone, 1, 2, 30, 60, 30);
  const double with = ends_of(one_floods, fair_by_tenant(), 1).percentile(0.99);
  const double without = ends_of(alone, fair_by_tenant(), 1).percentile(0.99);
  INFO(with << " s beside a flood, " << without << " s alone");
  CHECK(with < 4 * without);
  CHECK(ends_of(one_floods, first_come(), 1).percentile(0.99) > 10 * without);
}

TEST_CASE("under shortest-first a long request waits, but not for ever", "[scheduler]") {
  tool::Trace trace;
  add_stream(trace, 0, 60, 300, 30, 20);
  trace.requests.push_back(arriving(1.0, 2000, 200, 1));
  const double aged = ends_of(trace, shortest_first(20.0), 1).max();
  const double starved = ends_of(trace, shortest_first(0.0), 1).max();
  INFO(aged << " s with aging, " << starved << " s without");
  CHECK(aged < 200.0);
  CHECK(starved > 250.0);
}

TEST_CASE("earliest-deadline meets all deadlines that one server can meet, where first-come misses some", "[scheduler]") {
  std::mt19937 random(5);
  std::uint64_t missed = 0, missed_by_first_come = 0;
  for (int round = 0; round < 40; ++round) {
    ReplicaOptions options = replica_options(earliest_deadline());
    options.limits.max_running = 1;
    tool::Trace trace;
    for (int i = 0; i < 25; ++i) trace.requests.push_back(arriving(0.0, 1 + random() % 200, 1 + random() % 40));
    // In this order they end at these times; so the deadlines can be met.
    std::vector<std::size_t> order(trace.requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    double end = 0.0;
    for (const std::size_t i : order) {
      tool::Trace one{.name = {}, .requests = {trace.requests[i]}};
      const auto figures = serve(one, options, 1, Router::round_robin, {});
      REQUIRE(figures.has_value());
      end += figures->seconds;
      trace.requests[i].deadline = end + 1e-6;
    }
    missed += serve(trace, options, 1, Router::round_robin, {})->missed;
    options.policy = first_come();
    missed_by_first_come += serve(trace, options, 1, Router::round_robin, {})->missed;
  }
  CHECK(missed == 0);
  CHECK(missed_by_first_come > 100);
}

TEST_CASE("steps taken together end requests when steps taken one by one do", "[scheduler]") {
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{3000}}) {
    tool::Trace trace = tool::make_trace({.rate = 6.0, .requests = 300, .prompt = 50, .output = 30, .seed = 9});
    ReplicaOptions options = replica_options(first_come());
    options.kv_budget = budget;
    const auto together = serve(trace, options, 1, Router::round_robin, {});
    options.one_by_one = true;
    const auto apart = serve(trace, options, 1, Router::round_robin, {});
    CHECK(together->finished == apart->finished);
    CHECK(together->output_tokens == apart->output_tokens);
    CHECK(std::abs(together->seconds / apart->seconds - 1.0) < 0.01);
    CHECK(std::abs(together->ttft.percentile(0.95) / apart->ttft.percentile(0.95) - 1.0) < 0.1);
    CHECK(std::abs(together->e2e.mean() / apart->e2e.mean() - 1.0) < 0.02);
  }
}

TEST_CASE("a shared prefix is computed once, and a router that knows of it finds it", "[scheduler]") {
  tool::Trace trace;
  trace.block_tokens = 32;
  std::mt19937 random(1);
  for (int i = 0; i < 600; ++i) {
    tool::TraceRequest one = arriving(0.05 * i, 256, 8);
    const std::uint64_t family = random() % 12;
    for (std::uint64_t b = 0; b < 6; ++b) one.blocks.push_back(family * 100 + b);
    one.blocks.push_back(100000u + static_cast<std::uint64_t>(i) * 2);
    one.blocks.push_back(100001u + static_cast<std::uint64_t>(i) * 2);
    trace.requests.push_back(one);
  }
  const double ideal = tool::ideal_prefix_hit(trace);
  CHECK(ideal > 0.7);
  const auto one = serve(trace, replica_options(first_come()), 1, Router::round_robin, {});
  CHECK(one->prefix_hit() > 0.95 * ideal);
  const auto spread = serve(trace, replica_options(first_come()), 8, Router::round_robin, {});
  const auto routed = serve(trace, replica_options(first_come()), 8, Router::prefix, {});
  CHECK(routed->prefix_hit() > spread->prefix_hit() + 0.05);
}

}  // namespace test_simulated_policies
