// Requests that drop tokens, where pages are short: what is preempted gives the tokens that it gives alone, and what is
// accepted ends without cache_full. TESSERA_TEST_ROUNDS: rounds of random requests; without it a few.
#include <cstdlib>
#include <map>
#include <random>
#include <tuple>

#include <tessera/decoding/samples.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "engine/kv_rig.hpp"

namespace test_dropped_requests {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kPage = 32;

EngineOptions counting(std::uint64_t kv_budget = 0) {
  EngineOptions options;
  options.threads = 1;
  options.step_rows = 64;
  options.kv_budget = kv_budget;
  options.kv.budget = {.tokens = 160, .choice = TokenChoice::snapkv};  // room to count attention
  return options;
}

struct Wish {
  std::size_t first = 0, prompt = 0, drawn = 0;  // of the rig's tokens
  TokenBudget budget = {.tokens = kNoTokenBudget};
  StreamOptions stream = {};
  std::uint32_t context = 0;
  std::uint32_t samples = 1;

  [[nodiscard]] SessionOptions session_options() const {
    SessionOptions options;
    options.kv.budget = budget;
    options.stream = stream;
    options.context = context;
    return options;
  }
  [[nodiscard]] GenerateOptions generate() const {
    return {.max_tokens = drawn, .end_of_generation = EndOfGeneration::ignore};
  }
};

Sampler sampler() { return sampling::chain().temperature(1.0f).seed(3).build(); }

using Answers = std::vector<std::vector<Token>>;  // [samples]

Answers alone(const KvRig& rig, const Wish& wish) {
  Session session = must(rig.engine.session(wish.session_options()));
  must(session.append(rig.part(wish.first, wish.prompt)));
  Samples samples = must(Samples::start(session, sampler(), {.samples = wish.samples, .generate = wish.generate()}));
  Answers answers(wish.samples);
  while (auto piece = samples.next()) answers[piece->sample].push_back(piece->piece.token);
  must(samples.status());
  return answers;
}

Request request_of(const KvRig& rig, const Wish& wish) {
  const auto prompt = rig.part(wish.first, wish.prompt);
  Request request;
  request.prompt = {prompt.begin(), prompt.end()};
  request.session_options = wish.session_options();
  request.sampler = sampler();
  request.generate = wish.generate();
  request.samples = wish.samples;
  return request;
}

Answers read(RequestHandle& handle, Answers answers) {
  while (auto piece = handle.try_next()) answers[piece->sample].push_back(piece->piece.token);
  return answers;
}

}  // namespace

TEST_CASE("a request with a budget and samples that is preempted draws what it draws alone, at whatever moment",
          "[scheduler]") {
  const KvRig lone(counting());
  std::size_t preempted = 0, accepted = 0;
  for (const std::uint32_t samples : {1u, 2u, 3u}) {
    const Wish wish{.first = 0,
                    .prompt = 185,
                    .drawn = 12,
                    .budget = {.tokens = 148, .choice = TokenChoice::window},
                    .samples = samples};
    const Answers expected = alone(lone, wish);
    for (const std::uint64_t pages : {8u, 10u, 12u}) {
      const KvRig rig(counting(lone.page_bytes() * pages));
      for (const std::size_t second : {60u, 120u, 180u}) {
        for (int late = 0; late < 24; late += 2) {
          CAPTURE(samples, pages, second, late);
          rig.engine.trim();
          Scheduler scheduler = must(Scheduler::create(rig.engine, {.policy = by_priority(), .limits = {.rows = 64}}));
          Request first = request_of(lone, wish);
          first.priority = 5;
          auto handle = scheduler.submit(std::move(first));
          if (!handle) continue;
          ++accepted;
          for (int i = 0; i < late; ++i) (void)must(scheduler.step());
          auto other = scheduler.submit(request_of(lone, {.first = 200, .prompt = second, .drawn = 30}));
          for (int i = 0; i < 3000 && !scheduler.idle(); ++i) (void)must(scheduler.step());
          REQUIRE(scheduler.idle());
          const Answers got = read(*handle, Answers(samples));
          must(handle->status());
          CHECK(got == expected);
          preempted += handle->figures().preemptions > 0 ? 1 : 0;
          if (other) must(other->status());
        }
      }
    }
  }
  CHECK(accepted > 200);
  CHECK(preempted > 40);
}

TEST_CASE("what could not be dropped yet, for want of pages, is not computed again without", "[scheduler]") {
  const KvRig lone(counting());
  const Wish wish{
      .first = 0, .prompt = 185, .drawn = 12, .budget = {.tokens = 148, .choice = TokenChoice::window}, .samples = 2};
  const Answers expected = alone(lone, wish);
  const KvRig rig(counting(lone.page_bytes() * 24));
  std::vector<std::byte> saved;
  must(rig.given(rig.part(100, 33), {.prefix = PrefixReuse::off, .budget = {.tokens = kNoTokenBudget}})
           .save([&](std::span<const std::byte> bytes) -> Status {
             saved.insert(saved.end(), bytes.begin(), bytes.end());
             return {};
           }));
  rig.engine.trim();
  // With the first token, before the drop, sessions of the host take all pages that are left.
  std::vector<Session> hosts;
  Request first = request_of(lone, wish);
  first.priority = 5;
  first.sampler =
      sampling::chain()
          .stage([&](sampling::Candidates&, const sampling::Context&) {
            if (!hosts.empty()) return;
            const SessionOptions options{.kv = {.prefix = PrefixReuse::off, .budget = {.tokens = kNoTokenBudget}}};
            while (auto taken = rig.engine.restore(saved, options)) hosts.push_back(*std::move(taken));
          })
          .temperature(1.0f)
          .seed(3)
          .build();
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.policy = by_priority(), .limits = {.rows = 64}}));
  RequestHandle handle = must(scheduler.submit(std::move(first)));
  for (int i = 0; i < 100 && hosts.empty(); ++i) (void)must(scheduler.step());
  REQUIRE(hosts.size() > 4);
  RequestHandle other = must(scheduler.submit(request_of(lone, {.first = 200, .prompt = 60, .drawn = 30})));
  for (int i = 0; i < 20; ++i) (void)must(scheduler.step());
  must(handle.status());
  hosts.clear();
  for (int i = 0; i < 3000 && !scheduler.idle(); ++i) (void)must(scheduler.step());
  CHECK(read(handle, Answers(2)) == expected);
  must(handle.status());
  must(other.status());
}

TEST_CASE(
    "random requests that drop tokens, or are streams, end with the tokens that they draw alone where pages are short",
    "[scheduler]") {
  const char* const given = std::getenv("TESSERA_TEST_ROUNDS");
  const unsigned rounds = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 12;
  const KvRig lone(counting());
  std::size_t preempted = 0, ended = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::mt19937 random(round);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::uint64_t pages = 8 + below(20);
    const KvRig rig(counting(lone.page_bytes() * pages));
    Scheduler scheduler =
        must(Scheduler::create(rig.engine, {.policy = below(2) == 0 ? by_priority() : first_come(),
                                            .limits = {.rows = static_cast<std::uint32_t>(16 + below(100))}}));
    struct Asked {
      Wish wish;
      RequestHandle handle;
      Answers answers;
      bool is_cancelled = false;
    };
    std::vector<Asked> asked;
    for (std::size_t to_come = 10; to_come > 0 || !scheduler.idle();) {
      CAPTURE(round, pages, to_come);
      if (to_come > 0 && below(6) == 0) {
        --to_come;
        Wish wish{.first = below(4) * 30,
                  .prompt = 1 + below(260),
                  .drawn = 1 + below(90),
                  .samples = static_cast<std::uint32_t>(1 + below(3))};
        switch (below(5)) {
          case 0:
            break;
          case 1:
            wish.context = static_cast<std::uint32_t>(wish.prompt + 1 + below(60));
            wish.stream = {.sinks = 4, .window = static_cast<std::uint32_t>(wish.context / 2)};
            if (wish.context < 20) wish.stream = {}, wish.context = 0;
            break;
          default:
            wish.budget = {.tokens = static_cast<std::uint32_t>(128 + below(60)),
                           .choice = static_cast<TokenChoice>(below(3)),
                           .sinks = static_cast<std::uint32_t>(below(40))};
        }
        // What draws without dropping may be refused by nobody, and still need more than there is.
        const bool drops = wish.budget.tokens != kNoTokenBudget || wish.stream.window != 0;
        if (!drops && (wish.prompt + wish.drawn + kPage - 1) / kPage > pages) continue;
        Request request = request_of(lone, wish);
        request.priority = static_cast<std::int32_t>(below(3));
        auto handle = scheduler.submit(std::move(request));
        if (handle) asked.push_back({.wish = wish, .handle = *std::move(handle), .answers = Answers(wish.samples)});
      }
      (void)must(scheduler.step());
      for (Asked& one : asked) {
        one.answers = read(one.handle, std::move(one.answers));
        if (below(60) == 0) one.handle.pause();
        if (below(8) == 0) one.handle.resume();
        if (below(900) == 0) one.handle.cancel(), one.is_cancelled = true;
      }
      REQUIRE(scheduler.figures().steps < 40000);
    }
    for (Asked& one : asked) {
      CAPTURE(round, pages, one.wish.prompt, one.wish.drawn, one.wish.samples, one.wish.budget.tokens,
              one.wish.stream.window);
      one.answers = read(one.handle, std::move(one.answers));
      preempted += one.handle.figures().preemptions;
      ++ended;
      const Status status = one.handle.status();
      if (!status && one.is_cancelled && status.error().code() == ErrorCode::cancelled) continue;
      must(status);
      CHECK(one.answers == alone(lone, one.wish));
    }
  }
  CHECK(preempted > rounds);
  CHECK(ended > 5 * rounds);
}

}  // namespace test_dropped_requests
