// What the next step consists of: budgets, pages, order, and that everything ends.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include <tessera/unstable/scheduler/plan_step.hpp>

#include "catch.hpp"

namespace test_plan_step {

using namespace tessera;

namespace {

constexpr std::uint64_t kPageBytes = 1000;

PageCost one_group() { return {.page_tokens = 16, .groups = {{.page_bytes = kPageBytes}}}; }
CostModel known_costs() {
  return CostModel({.fixed = 2e-3, .output = 1e-4, .few_rows = 1e-4, .many_rows = 1e-3, .key = 1e-8});
}

PlannedRequest request(std::uint64_t order, std::uint64_t prompt, std::uint64_t expected) {
  return {.id = order, .order = order, .submitted = static_cast<double>(order), .prompt = prompt, .expected = expected};
}
PlannedRequest decoding(std::uint64_t order, std::uint64_t prompt, std::uint64_t drawn, const PageCost& pages) {
  PlannedRequest one = request(order, prompt, drawn + 100);
  one.drawn = drawn;
  one.computed = prompt + drawn - 1;
  one.held = pages.bytes(one.computed);
  return one;
}

StepPlan planned(std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting, std::uint64_t free,
                 const StepLimits& limits, const Policy& policy = *first_come(), double now = 100.0) {
  StepPlanner planner;
  StepPlan plan;
  planner.plan(running, waiting, {.cost = one_group(), .free = free}, known_costs(), policy, limits, now, plan);
  return plan;
}

std::vector<std::size_t> indices(const StepPlan& plan) {
  std::vector<std::size_t> list;
  for (const auto& part : plan.shares) list.push_back(part.request);
  return list;
}

}  // namespace

TEST_CASE("requests that decode have a row each, and a prompt takes what the budget leaves", "[scheduler]") {
  const PageCost pages = one_group();
  const std::vector running = {decoding(0, 30, 3, pages), decoding(1, 40, 5, pages), request(2, 900, 10)};
  const StepPlan plan = planned(running, {}, 1 << 30, {.seconds = 0.05, .rows = 512});
  REQUIRE(indices(plan) == std::vector<std::size_t>{0, 1, 2});
  CHECK(plan.shares[0].rows == 1);
  CHECK(plan.shares[1].rows == 1);
  CHECK(plan.seconds <= 0.05);
  // One row more would be more than the budget.
  StepLoad more = plan.load;
  more.rows += 1;
  more.keys += plan.shares[2].rows + 1;
  CHECK(known_costs().predict(more) > 0.05);
}

TEST_CASE("beams have a row each, and take the places and the pages of as many", "[scheduler]") {
  const PageCost pages = one_group();
  PlannedRequest search = decoding(1, 32, 5, pages);
  search.beams = 4;
  search.next_bytes = 3 * kPageBytes;
  const std::vector running = {decoding(0, 30, 3, pages), search};
  const StepLimits limits{.rows = 64, .max_running = 6, .headroom = 0.0};
  const StepPlan plan = planned(running, std::vector{request(2, 3, 4), request(3, 3, 4)}, 1 << 30, limits);
  REQUIRE(indices(plan) == std::vector<std::size_t>{0, 1, 2});  // one place is left
  CHECK(plan.shares[1].rows == 4);
  CHECK(plan.load.rows == 1 + 4 + 3);
  CHECK(plan.load.outputs == 1 + 4 + 1);
  CHECK(plan.load.keys == 33 + 4 * 37 + 6);
  CHECK(plan.bytes == kPageBytes + 3 * kPageBytes + pages.bytes(3) + kPageBytes);
  // Its pages are there, or it gives way.
  CHECK(planned(running, {}, 4 * kPageBytes, limits).preempted.empty());
  CHECK(planned(running, {}, 4 * kPageBytes - 1, limits).preempted == std::vector<std::size_t>{1});
  // To be admitted it needs a page for each beam beside the prompt's.
  PlannedRequest wanted = request(0, 40, 8);
  wanted.beams = 4;
  CHECK(bytes_to_admit(wanted, pages, 0.0) == 3 * kPageBytes + 4 * kPageBytes);
}

TEST_CASE("a drop takes pages, and what a request keeps until its end is nobody else's", "[scheduler]") {
  const PageCost pages = one_group();
  const StepLimits limits{.seconds = 1.0, .rows = 512};
  // The next row fills the budget, and the drop copies two pages. The second request gives way for them.
  PlannedRequest drops = decoding(0, 32, 5, pages), other = decoding(1, 32, 5, pages);
  drops.budget = drops.computed + 1;
  drops.drop_bytes = 2 * kPageBytes;
  CHECK(ends_in_drop(drops, 1));
  CHECK(bytes_of_rows(drops, pages, 1) == 2 * kPageBytes);
  CHECK(planned(std::vector{drops, other}, {}, 2 * kPageBytes, limits).preempted.empty());
  CHECK(planned(std::vector{drops, other}, {}, 2 * kPageBytes - 1, limits).preempted == std::vector<std::size_t>{1});
  // What will drop is admitted where there is room for it until then, whatever the headroom.
  PlannedRequest wanted = request(0, 20, 100);
  wanted.budget = 64;
  wanted.drop_bytes = kPageBytes;
  CHECK(bytes_to_admit(wanted, pages, 0.0) == pages.bytes(64) + kPageBytes);
  // One that has dropped tokens never gives way, and has its pages though another comes before it.
  PlannedRequest keeps = decoding(1, 32, 5, pages);
  keeps.computed = keeps.prompt + keeps.drawn - 1;
  keeps.budget = keeps.computed + pages.page_tokens;
  keeps.expected = 1000;
  keeps.keeps_pages = true;
  keeps.held = 0;
  const std::uint64_t set_aside = bytes_set_aside(keeps, pages);
  CHECK(set_aside == pages.bytes(keeps.budget) - pages.bytes(keeps.computed));
  PlannedRequest first = decoding(0, 32, 1, pages);  // its next row begins a page
  const StepPlan short_of_one = planned(std::vector{first, keeps}, {}, set_aside + kPageBytes - 1, limits);
  CHECK(short_of_one.preempted == std::vector<std::size_t>{0});
  CHECK(indices(short_of_one) == std::vector<std::size_t>{1});
  CHECK(indices(planned(std::vector{first, keeps}, {}, set_aside + kPageBytes, limits)) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("without requests that decode a step takes as many rows as it may", "[scheduler]") {
  const StepPlan plan = planned({}, std::vector{request(0, 900, 10), request(1, 900, 10)}, 1 << 30,
                                {.seconds = 0.001, .rows = 512});
  REQUIRE(indices(plan) == std::vector<std::size_t>{0});
  CHECK(plan.shares[0].rows == 512);
}

TEST_CASE("one prompt goes on slowly where decoding fills the budget by itself", "[scheduler]") {
  const PageCost pages = one_group();
  std::vector<PlannedRequest> running;
  for (std::uint64_t i = 0; i < 40; ++i) running.push_back(decoding(i, 30, 3, pages));
  running.push_back(request(40, 900, 10));
  const StepPlan plan = planned(running, {}, 1 << 30, {.seconds = 0.001, .rows = 512});
  REQUIRE(plan.shares.size() == 41);
  CHECK(plan.shares.back().rows > 0);
  CHECK(plan.shares.back().rows <= 8);
}

TEST_CASE("who decodes and finds no page takes those of the one behind it that loses least", "[scheduler]") {
  const PageCost pages = one_group();
  // At a page's end each: all need a page.
  std::vector running = {decoding(0, 30, 3, pages), decoding(1, 60, 5, pages), decoding(2, 14, 3, pages)};
  const StepPlan plan = planned(running, {}, 0, {});
  // 2 has computed 16 tokens and 1 has 64: each frees its pages, at a token a sixteenth of a page both.
  REQUIRE(plan.preempted.size() == 1);
  const std::size_t victim = plan.preempted[0];
  CHECK(victim != 0);
  CHECK(std::ranges::count(indices(plan), victim) == 0);
  CHECK(indices(plan).front() == 0);

  // Alone it gives way itself: that there is room for it is for admission to say.
  const StepPlan alone = planned(std::span(running).first(1), {}, 0, {});
  CHECK(alone.shares.empty());
  CHECK(alone.preempted == std::vector<std::size_t>{0});
}

TEST_CASE("nothing is admitted in a step that preempts, and nothing that has no room", "[scheduler]") {
  const PageCost pages = one_group();
  const std::vector running = {decoding(0, 30, 3, pages), decoding(1, 30, 3, pages)};
  const std::vector waiting = {request(2, 4, 4)};
  CHECK(indices(planned(running, waiting, 0, {})) == std::vector<std::size_t>{0});
  // Both take a page, and the new one needs one for its prompt and one to draw; each of the others may need another.
  CHECK(indices(planned(running, waiting, 5 * kPageBytes, {.headroom = 0.0})).size() == 2);
  CHECK(indices(planned(running, waiting, 6 * kPageBytes, {.headroom = 0.0})).size() == 3);
}

TEST_CASE("none overtakes the first that does not fit", "[scheduler]") {
  const std::vector waiting = {request(0, 1600, 10), request(1, 4, 4)};
  CHECK(planned({}, waiting, 50 * kPageBytes, {}).shares.empty());
  const std::vector turned = {request(1, 1600, 10), request(0, 4, 4)};
  CHECK(indices(planned({}, turned, 50 * kPageBytes, {})) == std::vector<std::size_t>{1});
}

TEST_CASE("one that awaits another's pages is passed over, and its place and its pages are kept", "[scheduler]") {
  // The second awaits the first; the third needs a page for its prompt and one to draw.
  std::vector waiting = {request(0, 160, 10), request(1, 160, 10), request(2, 4, 4)};
  waiting[1].awaits = 0;
  const StepLimits limits{.headroom = 0.0};
  CHECK(indices(planned({}, waiting, 100 * kPageBytes, limits)) == std::vector<std::size_t>{0, 2});
  CHECK(indices(planned({}, waiting, 100 * kPageBytes, {.max_running = 2, .headroom = 0.0})) == std::vector<std::size_t>{0});
  CHECK(indices(planned({}, waiting, 24 * kPageBytes, limits)) == std::vector<std::size_t>{0, 2});
  CHECK(indices(planned({}, waiting, 23 * kPageBytes, limits)) == std::vector<std::size_t>{0});
  // Who runs is awaited as well, who does not is not.
  const std::vector running = {request(7, 160, 10)};
  waiting[0].awaits = 7;
  CHECK(indices(planned(running, waiting, 100 * kPageBytes, limits)) == std::vector<std::size_t>{3, 0, 2});
  waiting[0].awaits = 8;
  CHECK(indices(planned(running, waiting, 100 * kPageBytes, limits)) == std::vector<std::size_t>{3, 0, 1});
}

TEST_CASE("policies order those that wait", "[scheduler]") {
  std::vector waiting = {request(0, 300, 300), request(1, 20, 5), request(2, 40, 40)};
  waiting[0].priority = 2, waiting[1].priority = 1, waiting[2].priority = 0;
  waiting[0].deadline = 500, waiting[1].deadline = 400, waiting[2].deadline = 300;
  waiting[0].tenant_service = 1, waiting[1].tenant_service = 3, waiting[2].tenant_service = 2;
  waiting[0].saved = 280;
  const auto order = [&](const PolicyPtr& policy, double now = 10.0) {
    return indices(planned({}, waiting, 1 << 30, {}, *policy, now));
  };
  using Order = std::vector<std::size_t>;
  CHECK(order(first_come()) == Order{0, 1, 2});
  CHECK(order(by_priority()) == Order{2, 1, 0});
  CHECK(order(shortest_first()) == Order{1, 2, 0});
  CHECK(order(earliest_deadline()) == Order{2, 1, 0});
  CHECK(order(fair_by_tenant()) == Order{0, 2, 1});
  CHECK(order(prefix_first()) == Order{0, 1, 2});
  // Long waiting outweighs length: the first has waited 50 s more.
  waiting[1].submitted = waiting[2].submitted = 50.0;
  CHECK(order(shortest_first(20.0), 50.0).front() == 0);
  CHECK(order(shortest_first(0.0), 50.0).front() == 1);
}

TEST_CASE("a batch that is not continuous begins whole", "[scheduler]") {
  const PageCost pages = one_group();
  const std::vector running = {decoding(0, 30, 3, pages)};
  const std::vector waiting = {request(1, 4, 4), request(2, 4, 4)};
  CHECK(indices(planned(running, waiting, 1 << 30, {.batching = Batching::fixed})).size() == 1);
  CHECK(indices(planned({}, waiting, 1 << 30, {.batching = Batching::fixed})).size() == 2);
  StepLimits limits{.max_running = 4, .batching = Batching::dynamic, .max_wait = 50.0};
  CHECK(planned({}, waiting, 1 << 30, limits, *first_come(), 10.0).shares.empty());
  CHECK(indices(planned({}, waiting, 1 << 30, limits, *first_come(), 51.0)).size() == 2);
  limits.max_running = 2;
  CHECK(indices(planned({}, waiting, 1 << 30, limits, *first_come(), 10.0)).size() == 2);
}

// Random requests through random rooms, played by hand: every plan keeps its rules, and every request ends.
TEST_CASE("plans keep within pages and rows, and every request ends", "[scheduler]") {
  std::mt19937 random(7);
  const auto below = [&random](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
  const std::vector<PolicyPtr> policies = {first_come(),      by_priority(),      shortest_first(),
                                           earliest_deadline(), fair_by_tenant(), prefix_first()};
  std::uint64_t preemptions = 0, ended = 0;
  for (int round = 0; round < 60; ++round) {
    PageCost pages{.page_tokens = 16, .groups = {{.page_bytes = kPageBytes}}};
    if (round % 3 == 1) pages.groups.push_back({.page_bytes = 700, .window = 40});
    const std::uint64_t budget = (12 + below(20)) * pages.next_bytes();
    const StepLimits limits{.seconds = 0.02,
                            .rows = 32,
                            .max_running = static_cast<std::uint32_t>(1 + below(8)),
                            .batching = static_cast<Batching>(round % 4 == 3 ? 2 : 0),
                            .headroom = round % 2 == 0 ? 0.0 : 0.5,
                            .first_share = round % 5 == 0 ? 1.0 : 0.25};
    const Policy& policy = *policies[static_cast<std::size_t>(round) % policies.size()];
    std::vector<PlannedRequest> running, waiting;
    StepPlanner planner;
    StepPlan plan;
    std::uint64_t submitted = 0;
    const std::uint64_t total = 30;
    double now = 0.0;
    for (int step = 0; submitted < total || !running.empty() || !waiting.empty(); ++step) {
      REQUIRE(step < 20000);
      if (submitted < total && below(3) == 0) {
        PlannedRequest one = request(submitted, 1 + below(below(4) == 0 ? 200 : 30), 1 + below(120));
        one.submitted = now;
        one.priority = static_cast<std::int32_t>(below(3));
        one.tenant_service = static_cast<double>(below(5));
        ++submitted;
        if (std::max(bytes_to_admit(one, pages, limits.headroom), pages.bytes(one.prompt + one.expected)) <= budget) {
          waiting.push_back(one);
        } else {
          ++ended;
        }
      }
      std::uint64_t held = 0;
      for (const PlannedRequest& one : running) held += one.held;
      REQUIRE(held <= budget);
      planner.plan(running, waiting, {.cost = pages, .free = budget - held}, known_costs(), policy, limits, now, plan);

      std::set<std::size_t> seen;
      std::uint64_t need = 0, freed = 0, rows = 0;
      for (const std::size_t index : plan.preempted) {
        REQUIRE(seen.insert(index).second);
        freed += running[index].held;
      }
      for (const auto& part : plan.shares) {
        REQUIRE(seen.insert(part.request).second);
        const bool is_new = part.request >= running.size();
        const PlannedRequest& one = is_new ? waiting[part.request - running.size()] : running[part.request];
        REQUIRE(part.rows > 0);
        REQUIRE(part.rows <= one.needed());
        if (is_new) REQUIRE(plan.preempted.empty());
        need += pages.bytes(one.computed + part.rows) - pages.bytes(one.computed);
        rows += part.rows;
      }
      REQUIRE(need <= budget - held + freed);
      REQUIRE(rows <= std::max<std::uint64_t>(limits.rows, running.size()));
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (running[i].needed() == 1) REQUIRE(seen.contains(i));  // goes on, or gives way
      }

      // Play it.
      const std::size_t before = running.size();
      std::vector<std::size_t> admitted;
      for (const auto& part : plan.shares) {
        PlannedRequest one = part.request < before ? running[part.request] : waiting[part.request - before];
        const bool draws = part.rows == one.needed();
        one.computed += part.rows;
        one.held = pages.bytes(one.computed);
        if (draws) ++one.drawn;
        if (part.request < before) {
          running[part.request] = one;
        } else {
          admitted.push_back(part.request - before);
          running.push_back(one);
        }
      }
      std::ranges::sort(admitted, std::greater<>());
      for (const std::size_t index : admitted) waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
      auto preempted = plan.preempted;
      std::ranges::sort(preempted, std::greater<>());
      for (const std::size_t index : preempted) {
        PlannedRequest one = running[index];
        one.computed = one.held = 0;
        waiting.push_back(one);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
        ++preemptions;
      }
      ended += std::erase_if(running, [](const PlannedRequest& one) { return one.drawn >= one.expected; });
      now += 0.01 + plan.seconds;
    }
  }
  CHECK(ended == 60 * 30);
  CHECK(preemptions > 50);  // or the rooms are too large to show anything
}

TEST_CASE("drafts have rows while they pay, and a full batch has none", "[scheduler]") {
  const PageCost pages = one_group();
  const auto drafts_of = [&](std::size_t n, double chance, double seconds, const StepLimits& limits = {}, std::uint64_t free = 1 << 30) {
    std::vector<PlannedRequest> running;
    for (std::uint64_t i = 0; i < n; ++i) {
      running.push_back(decoding(i, 30, 3, pages));
      running.back().drafts = 6;
      running.back().draft_chance = chance;
      running.back().draft_seconds = seconds;
    }
    const StepPlan plan = planned(running, {}, free, limits);
    std::vector<std::uint32_t> drafts;
    std::uint32_t rows = 0;
    for (const auto& part : plan.shares) {
      drafts.push_back(part.rows - 1);
      rows += part.rows;
    }
    REQUIRE(drafts.size() == n);
    CHECK(plan.load.rows == rows);
    CHECK(plan.load.outputs == rows);
    CHECK(plan.seconds == known_costs().predict(plan.load));
    return drafts;
  };
  // One request: 2.2 ms a step, 0.2 ms a row more. As many as the formula's best k, by its own measure.
  for (const double chance : {0.05, 0.3, 0.6, 0.9}) {
    const auto rate = [&](std::uint32_t k) {
      double tokens = 0.0;
      for (std::uint32_t i = 0; i <= k; ++i) tokens += std::pow(chance, i);
      return tokens / known_costs().predict({.rows = k + 1, .outputs = k + 1, .keys = 33 * (k + 1)});
    };
    std::uint32_t best = 0;
    for (std::uint32_t k = 1; k <= 6; ++k) best = rate(k) > rate(best) ? k : best;
    const std::uint32_t chosen = drafts_of(1, chance, 0.0)[0];
    CHECK(rate(chosen) >= 0.98 * rate(best));
    CHECK((chance < 0.1) == (chosen == 0));
  }
  CHECK(drafts_of(1, 0.9, 0.0)[0] >= 5);
  CHECK(drafts_of(1, 0.9, 2e-3)[0] <= 2);  // a slow drafter
  CHECK(drafts_of(1, 0.9, 1e-2)[0] == 0);
  // Rows beyond 16 cost five times as much: with 16 requests none pays, with 8 the first ones do.
  CHECK(drafts_of(16, 0.9, 0.0) == std::vector<std::uint32_t>(16, 0));
  CHECK(drafts_of(16, 1.0, 0.0) == std::vector<std::uint32_t>(16, 0));
  CHECK(drafts_of(8, 0.8, 0.0) == std::vector<std::uint32_t>(8, 1));
  // Those who want all have all, within the step's rows; the others stay within its seconds.
  CHECK(drafts_of(16, std::numeric_limits<double>::infinity(), 0.0) == std::vector<std::uint32_t>(16, 6));
  const auto few = drafts_of(4, std::numeric_limits<double>::infinity(), 0.0, {.rows = 10});
  CHECK(few == std::vector<std::uint32_t>{2, 2, 1, 1});
  CHECK(drafts_of(1, 0.9, 0.0, {.seconds = 0.00265})[0] == 2);
  // Position 32 is the first of a new page: for the request's own row there is one, for a 17th row there is none.
  CHECK(drafts_of(1, 0.9, 0.0, {}, kPageBytes)[0] >= 5);
  std::vector<PlannedRequest> near{decoding(0, 30, 1, pages)};
  near[0].drafts = 6;
  near[0].draft_chance = 0.95;
  CHECK(planned(near, {}, 0, {}).shares[0].rows == 2);  // positions 30 and 31 have their page
  // Each draft behind the first may branch off, where there is a page for it.
  const auto branches_of = [&](std::uint32_t branches, std::uint64_t free) {
    std::vector<PlannedRequest> running{decoding(0, 5, 1, pages)};
    running[0].drafts = 6;
    running[0].branches = branches;
    running[0].draft_chance = std::numeric_limits<double>::infinity();
    const StepPlan plan = planned(running, {}, free, {});
    CHECK(plan.shares[0].rows == 7);
    CHECK(plan.bytes == plan.shares[0].branches * kPageBytes);
    return plan.shares[0].branches;
  };
  CHECK(branches_of(0, 1 << 30) == 0);
  CHECK(branches_of(3, 1 << 30) == 3);
  CHECK(branches_of(15, 1 << 30) == 5);
  CHECK(branches_of(3, 2 * kPageBytes) == 2);
  CHECK(branches_of(3, kPageBytes - 1) == 0);
  // A prompt that waits for its rows is worth more than a guess.
  std::vector<PlannedRequest> both{decoding(0, 30, 3, pages), request(1, 900, 10)};
  both[0].drafts = 6;
  both[0].draft_chance = 0.9;
  CHECK(planned(both, {}, 1 << 30, {}).shares[0].rows == 1);
}

}  // namespace test_plan_step
