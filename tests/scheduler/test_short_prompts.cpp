// Short prompts beside long ones, in steps that are counted: the short ones do not wait for the long one, the long one ends
// all the same, and whoever comes first by rank is served first.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/plan_step.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "catch.hpp"
#include "engine/models.hpp"
#include "engine/inside.hpp"

namespace test_short_prompts {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kRows = 64;  // that a step has time for: a row takes a millisecond, nothing else takes any

CostModel millisecond_rows() { return CostModel({.fixed = 0, .output = 0, .few_rows = 1e-3, .many_rows = 1e-3, .key = 0}); }
std::uint64_t steps_for(std::uint64_t rows, std::uint64_t of_a_step) { return (rows + of_a_step - 1) / of_a_step; }
std::uint32_t share_of(double share, std::uint32_t rows) { return static_cast<std::uint32_t>(std::ceil(share * rows)); }

// Plays plans by hand. Whoever has its tokens ends.
class Play {
 public:
  explicit Play(StepLimits limits, PolicyPtr policy = first_come(), std::uint64_t budget = 1 << 30)
      : limits_(limits), policy_(std::move(policy)), budget_(budget) {}

  std::uint64_t submit(PlannedRequest one, const std::string& tenant = "") {
    one.id = one.order = submitted_++;
    one.submitted = static_cast<double>(steps_);
    one.expected = std::max<std::uint64_t>(one.expected, 1);
    tenants_.submitted(tenants_.named(tenant));
    tenant_of_[one.order] = tenant;
    waiting.push_back(one);
    return one.order;
  }
  void add_decoding(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      submit({.prompt = 1, .expected = 1 << 20});
      waiting.back().drawn = 1;
      waiting.back().computed = 1;
      running.push_back(waiting.back());
      waiting.pop_back();
    }
  }

  void step() {
    ++steps_;
    for (auto* list : {&running, &waiting}) {
      for (PlannedRequest& one : *list) one.tenant_service = tenants_.named(tenant_of_[one.order]).service;
    }
    std::uint64_t held = 0;
    for (const PlannedRequest& one : running) held += one.held;
    REQUIRE(held <= budget_);
    planner_.plan(running, waiting, {.cost = pages(), .free = budget_ - held}, costs_, *policy_, limits_, steps_, plan);
    CHECK(plan.preempted.empty());  // whoever was admitted has room
    rows.clear();
    const std::size_t before = running.size();
    for (const auto& part : plan.shares) {
      if (part.request >= before) running.push_back(waiting[part.request - before]);
      PlannedRequest& one = part.request >= before ? running.back() : running[part.request];
      REQUIRE(rows.emplace(one.order, part.rows).second);
      const bool draws = part.rows == one.needed();
      tenants_.computed_prompt(tenants_.named(tenant_of_[one.order]), part.rows);
      one.computed += part.rows;
      one.held = pages().bytes(one.computed);
      if (draws && one.drawn++ == 0) first[one.order] = static_cast<std::uint64_t>(steps_);
    }
    CHECK(plan.load.rows <= std::max<std::uint64_t>(limits_.rows, plan.load.outputs + 8));
    std::erase_if(waiting, [&](const auto& one) { return rows.contains(one.order); });
    std::erase_if(running, [&](const auto& one) {
      if (one.drawn < one.expected) return false;
      tenants_.ended(tenants_.named(tenant_of_[one.order]));
      return true;
    });
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
  void run_to(std::uint64_t order) {
    for (int i = 0; i < 5000 && !first.contains(order); ++i) step();
    REQUIRE(first.contains(order));
  }

  static PageCost pages() { return {.page_tokens = 16, .groups = {{.page_bytes = 1}}}; }
  // That have a row of the next step each, before any prompt.
  [[nodiscard]] std::uint32_t decoding() const {
    return static_cast<std::uint32_t>(std::ranges::count_if(running, [](const PlannedRequest& one) { return one.needed() == 1; }));
  }
  [[nodiscard]] double service(const std::string& tenant) { return tenants_.named(tenant).service; }
  [[nodiscard]] bool waits(std::uint64_t order) const { return std::ranges::find(waiting, order, &PlannedRequest::order) != waiting.end(); }

  std::vector<PlannedRequest> running, waiting;
  StepPlan plan;
  std::map<std::uint64_t, std::uint64_t> first;  // by order: the step that gave the first token, from 1
  std::map<std::uint64_t, std::uint32_t> rows;   // of the last step, likewise

 private:
  StepLimits limits_;
  PolicyPtr policy_;
  std::uint64_t budget_, submitted_ = 0;
  int steps_ = 0;
  CostModel costs_ = millisecond_rows();
  StepPlanner planner_;
  Tenants tenants_;
  std::map<std::uint64_t, std::string> tenant_of_;
};

StepLimits limits(double share = 0.25) { return {.seconds = (kRows + 0.5) * 1e-3, .rows = kRows, .headroom = 0.0, .first_share = share}; }

}  // namespace

TEST_CASE("a short prompt has its first token as soon as its rows fit beside the long one's share", "[scheduler]") {
  for (const std::uint32_t decoding : {0u, 1u, 30u}) {
    for (const double share : {0.25, 0.5, 1.0}) {
      for (const std::uint64_t tokens : {1u, 8u, 40u, 200u, 1000u}) {
        INFO(tokens << " tokens beside a share of " << share << " and " << decoding << " that decode");
        Play play(limits(share));
        play.add_decoding(decoding);
        const std::uint32_t rows = kRows - decoding, others = rows - share_of(share, rows);
        const std::uint64_t longer = play.submit({.prompt = 5000});
        play.steps(5);
        const std::uint64_t shorter = play.submit({.prompt = tokens});
        play.run_to(longer);
        play.run_to(shorter);
        // No row is lost for it.
        if (share < 1.0) {
          CHECK(play.first[shorter] == 5 + steps_for(tokens, others));
          CHECK(play.first[longer] == steps_for(5000 + tokens, rows));
        } else {
          CHECK(play.first[longer] == steps_for(5000, rows));
          CHECK(play.first[shorter] == steps_for(5000 + tokens, rows));
        }
      }
    }
  }
}

TEST_CASE("a long prompt has its share however many short ones come, and so has the next one", "[scheduler]") {
  for (const double share : {0.25, 0.5}) {
    for (const std::uint64_t tokens : {3u, 40u}) {  // of a short one
      Play play(limits(share));
      play.add_decoding(1);
      const std::uint64_t longer = play.submit({.prompt = 3000}), next = play.submit({.prompt = 1500});
      std::uint64_t left = 3000, least = 0, steps = 0;  // rows of the long one: still to come, due by its share
      while (!play.first.contains(next)) {
        REQUIRE(play.first.size() < 50'000);
        for (std::uint64_t i = 0; i < 80; i += tokens) play.submit({.prompt = tokens});  // more than there are rows for
        const std::uint32_t own = share_of(share, kRows - play.decoding());
        play.step();
        least += own;
        if (left == 0) continue;
        CHECK(play.rows[longer] >= std::min<std::uint64_t>(left, own));
        left -= play.rows[longer];
        ++steps;
        // The others have what it leaves: all but two of those that have begun are done.
        CHECK((play.first.size() + 2) * tokens >= steps * (kRows - 1 - share_of(share, kRows - 1)));
      }
      CHECK(left == 0);
      CHECK(least <= 4500 + kRows);
    }
  }
}

TEST_CASE("prompts of about one length are served as they came", "[scheduler]") {
  Play play(limits());
  play.add_decoding(1);
  const std::vector<std::uint64_t> lengths{500, 500, 400, 500, 420};
  for (const std::uint64_t tokens : lengths) play.submit({.prompt = tokens});
  play.run_to(5);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    before += lengths[i];
    CHECK(play.first[i + 1] == steps_for(before, kRows - 1));
  }
}

TEST_CASE("who comes first by priority or deadline has all the rows, though it waits and another has begun", "[scheduler]") {
  const bool by_deadline = GENERATE(false, true);
  Play play(limits(), by_deadline ? earliest_deadline() : by_priority());
  const auto request = [&](std::uint64_t tokens, int rank) {
    return PlannedRequest{.priority = rank, .deadline = 1e6 + rank, .prompt = tokens};
  };
  play.add_decoding(1);
  const std::uint32_t rows = kRows - 1;
  const std::uint64_t begun = play.submit(request(2000, 1));
  play.steps(3);
  const std::uint64_t first = play.submit(request(1000, 0)), last = play.submit(request(10, 2));
  play.run_to(first);
  CHECK(play.first[first] == 3 + steps_for(1000, rows));
  CHECK_FALSE(play.first.contains(last));
  play.run_to(last);
  CHECK(play.first[begun] == steps_for(3000, rows));
  CHECK(play.first[last] >= play.first[begun]);
  // Among equals the short one goes first.
  const std::uint64_t longer = play.submit(request(2000, 1));
  play.step();
  const std::uint64_t equal = play.submit(request(10, 1));
  play.step();
  CHECK(play.first.contains(equal));
  CHECK_FALSE(play.first.contains(longer));
}

TEST_CASE("tenants have equal rows of two floods of prompts, and the one that asks for little does not wait", "[scheduler]") {
  Play play(limits(), fair_by_tenant());
  play.add_decoding(1);
  for (int i = 0; i < 4; ++i) {
    play.submit({.prompt = 2000}, "a");
    play.submit({.prompt = 900}, "b");
    play.submit({.prompt = 900}, "b");
  }
  const double equal = play.service("a") - play.service("b");
  std::uint64_t asked = 0;
  for (int i = 0; i < 100; ++i) {
    if (i % 7 == 3) asked = play.submit({.prompt = 40}, "c");
    play.step();
    if (i % 7 == 3) CHECK(play.first.contains(asked));
    CHECK(std::abs(play.service("a") - play.service("b") - equal) <= kRows);
  }
}

TEST_CASE("the pages of one that has no rows yet are kept, and nobody gives any up for a short one", "[scheduler]") {
  const std::uint64_t longer = Play::pages().bytes(800) + 1, shorter = Play::pages().bytes(40) + 1;  // and one to draw
  for (const std::uint64_t budget : {2 * longer + 2 * shorter, 2 * longer + shorter, 2 * longer + shorter - 1}) {
    INFO(budget << " pages");
    const std::uint64_t room = (budget - 2 * longer) / shorter;  // of short ones
    Play play(limits(), first_come(), budget);
    const std::uint64_t one = play.submit({.prompt = 800}), two = play.submit({.prompt = 800});
    const std::uint64_t three = play.submit({.prompt = 40}), four = play.submit({.prompt = 40});
    play.step();
    CHECK(play.rows[one] > 0);
    CHECK(play.waits(two));
    CHECK(play.first.contains(three) == (room > 0));
    if (room == 1) CHECK(play.waits(four));
    play.step();
    CHECK(play.first.contains(three) == (room > 0));
    CHECK(play.first.contains(four) == (room > 0));
    if (room == 0) CHECK(play.waits(three));  // and there would be room, if that of the second was not kept
    for (const std::uint64_t order : {one, two, three, four}) play.run_to(order);
  }
}

TEST_CASE("where those who decode fill the budget, a short and a long prompt share the few rows", "[scheduler]") {
  StepLimits few = limits();
  few.seconds = 0.020;
  Play play(few);
  play.add_decoding(40);
  const std::uint64_t longer = play.submit({.prompt = 300});
  play.steps(2);
  const std::uint64_t shorter = play.submit({.prompt = 12});
  for (int step = 3; step <= 4; ++step) {
    play.step();
    CHECK(play.rows[longer] == 2);
    CHECK(play.rows[shorter] == 6);
  }
  CHECK(play.first[shorter] == 4);
  play.run_to(longer);
  CHECK(play.first[longer] == steps_for(312, 8));
}

TEST_CASE("a step of long prompts alone takes the rows that it may, and the seconds once a short one waits for its end", "[scheduler]") {
  StepLimits many = limits();
  many.rows = 512;
  Play play(many);
  const std::uint64_t longer = play.submit({.prompt = 3000});
  play.step();
  CHECK(play.rows[longer] == 512);
  const std::uint64_t equal = play.submit({.prompt = 2400});
  play.step();
  CHECK(play.rows[longer] == 512);
  const std::uint64_t shorter = play.submit({.prompt = 20});
  play.step();
  CHECK(play.first.contains(shorter));
  CHECK(play.rows[longer] == kRows - 20);
  play.step();
  CHECK(play.rows[longer] == 512);
  play.run_to(equal);
  CHECK(play.first[longer] == 7);
}

TEST_CASE("who waits for another's pages does so only while that one is served", "[scheduler]") {
  const std::vector<PlannedRequest> begun{{.order = 0, .prompt = 5000, .expected = 1}};
  std::vector<PlannedRequest> waiting{{.order = 1, .prompt = 2000, .expected = 1}, {.order = 2, .prompt = 40, .expected = 1, .awaits = 1}};
  const auto plan_of = [&](std::span<const PlannedRequest> running) {
    StepPlanner planner;
    StepPlan plan;
    planner.plan(running, waiting, {.cost = Play::pages(), .free = 1 << 30}, millisecond_rows(), *first_come(), limits(), 0.0, plan);
    std::vector<std::pair<std::size_t, std::uint32_t>> parts;
    for (const auto& part : plan.shares) parts.emplace_back(part.request, part.rows);
    return parts;
  };
  using Parts = std::vector<std::pair<std::size_t, std::uint32_t>>;
  // Behind the first one it is shorter than the one that it waits for, which would have nothing if there were fewer rows.
  CHECK(plan_of(begun) == Parts{{0, 16}, {2, 40}, {1, 8}});
  CHECK(plan_of({}) == Parts{{0, 64}});
  waiting[1].awaits = 0;
  CHECK(plan_of(begun) == Parts{{0, 16}, {1, 48}});
}

TEST_CASE("a plan counts what a prompt has in two pieces once, and serves nobody who gave way", "[scheduler]") {
  const auto plan_of = [](std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting, std::uint64_t free) {
    StepLimits many = limits();
    many.rows = 200;
    many.seconds = 1.0;
    StepPlanner planner;
    StepPlan plan;
    planner.plan(running, waiting, {.cost = Play::pages(), .free = free}, millisecond_rows(), *first_come(), many, 0.0, plan);
    return plan;
  };
  const std::vector<PlannedRequest> two{{.order = 0, .prompt = 100, .expected = 1}, {.order = 1, .prompt = 20, .expected = 1}};
  const StepPlan both = plan_of({}, two, 1000);
  CHECK(both.load.rows == 120);
  CHECK(both.load.outputs == 2);
  CHECK(both.load.keys == 100 * 101 / 2 + 20 * 21 / 2);
  CHECK(both.bytes == 7 + 1 + 2 + 1);
  // The first one's next page is the other's, which had something to compute as well.
  std::vector<PlannedRequest> tight = two;
  for (PlannedRequest& one : tight) one.computed = 16, one.held = 2;
  const StepPlan plan = plan_of(tight, {}, 0);
  CHECK(plan.preempted == std::vector<std::size_t>{1});
  REQUIRE(plan.shares.size() == 1);
  CHECK(plan.shares[0].request == 0);
}

// The same through a scheduler: steps counted, and the tokens are those that each gives alone.
TEST_CASE("a request with a short prompt has its first token while a long prompt is computed", "[scheduler]") {
  const Engine engine = load_stories({.kv = {.page_tokens = 16}, .threads = 2}, "tessera-stories-draft");
  const auto request_of = [](std::size_t tokens, Token salt) {
    Request request{.prompt = {}, .generate = {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore}};
    for (std::size_t i = 0; i < tokens; ++i) request.prompt.push_back(static_cast<Token>((i * 7 + static_cast<std::size_t>(salt)) % 200));
    return request;
  };
  const auto alone = [&](const Request& request) {
    Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
    must(session.append(request.prompt));
    Sampler greedy = sampling::chain().greedy().build();
    std::vector<Token> tokens;
    for (const auto& piece : session.generate(greedy, request.generate)) tokens.push_back(must(piece).token);
    return tokens;
  };
  const double share = GENERATE(0.25, 1.0);
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.seconds = 10.0, .rows = 32, .first_share = share}}));
  RequestHandle longer = must(scheduler.submit(request_of(400, 1)));
  for (int i = 0; i < 3; ++i) must(scheduler.step());
  std::vector<RequestHandle> shorter;
  std::vector<std::size_t> steps(4, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    shorter.push_back(must(scheduler.submit(request_of(12 + i, static_cast<Token>(i + 2)))));
    while (shorter[i].figures().tokens == 0) {
      must(scheduler.step());
      ++steps[i];
    }
  }
  CHECK((steps == std::vector<std::size_t>(4, 1)) == (share < 1.0));
  CHECK((longer.figures().tokens == 0) == (share < 1.0));
  const auto answer = [](RequestHandle& handle) {
    std::vector<Token> tokens;
    while (auto piece = handle.next()) tokens.push_back(piece->piece.token);
    must(handle.status());
    return tokens;
  };
  CHECK(answer(longer) == alone(request_of(400, 1)));
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(answer(shorter[i]) == alone(request_of(12 + i, static_cast<Token>(i + 2))));
}

}  // namespace test_short_prompts
