// Tenants without requests are forgotten where that changes nothing: memory and time follow those who have requests,
// and everybody has the service that they would have if nobody was ever forgotten.
#include <map>
#include <random>

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "engine/models.hpp"

namespace test_forgotten_tenants {

using namespace tessera;
using namespace tessera::test;

namespace {

// The same by the paper's words, and it forgets nobody.
class Reference {
 public:
  struct Tenant {
    double weight = 1.0, service = 0.0;
    std::uint64_t requests = 0;
  };
  Tenant& named(const std::string& name) { return tenants_[name]; }
  void submitted(Tenant& tenant) {
    if (tenant.requests > 0) return (void)++tenant.requests;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [name, other] : tenants_) {
      if (other.requests > 0) least = std::min(least, other.service);
    }
    tenant.service = std::max(tenant.service, std::isinf(least) ? last_ : least);
    ++tenant.requests;
  }
  void ended(Tenant& tenant) {
    if (--tenant.requests == 0) last_ = tenant.service;
  }

 private:
  std::map<std::string, Tenant> tenants_;
  double last_ = 0.0;  // service of the last one that left
};

}  // namespace

TEST_CASE("a tenant that was forgotten comes back to what it would have had", "[scheduler]") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Tenants tenants;
    Reference reference;
    tenants.set_weight("t3", 2.5);
    reference.named("t3").weight = 2.5;
    const std::size_t most = seed % 3 == 0 ? 1 : 6;  // requests at once
    struct Running {
      std::string name;
      Tenants::Tenant* tenant;
    };
    std::vector<Running> running;
    std::size_t largest = 0;
    for (int turn = 0; turn < 3000; ++turn) {
      if (running.empty() || (running.size() < most && random() % 3 == 0)) {
        const std::string name = "t" + std::to_string(random() % 4 == 0 ? random() % 5 : 10 + random() % 2000);
        Tenants::Tenant& tenant = tenants.named(name);
        tenants.submitted(tenant);
        reference.submitted(reference.named(name));
        running.push_back({name, &tenant});
      }
      const std::size_t at = random() % running.size();
      const Running one = running[at];
      // Where one is served far more than its share, as no policy would, others are remembered longer.
      const std::uint64_t tokens = seed % 5 == 4 ? random() % 100 : 1 + random() % 3;
      tenants.computed_prompt(*one.tenant, tokens);
      reference.named(one.name).service += static_cast<double>(tokens) * 1.0 / reference.named(one.name).weight;
      tenants.drawn(*one.tenant, 2);
      reference.named(one.name).service += 2 * 2.0 / reference.named(one.name).weight;
      if (random() % 4 == 0) {
        tenants.ended(*one.tenant);
        reference.ended(reference.named(one.name));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (const Running& other : running) REQUIRE(other.tenant->service == reference.named(other.name).service);
      largest = std::max(largest, tenants.size());
    }
    INFO("seed " << seed);
    CHECK(largest < (seed % 5 == 4 ? 1000u : 60u));
    CHECK(tenants.all().at("t3").weight == 2.5);
  }
}

TEST_CASE("a hundred thousand tenants that have gone leave nothing behind", "[scheduler]") {
  Tenants tenants;
  Tenants::Tenant& stays = tenants.named("stays");
  tenants.submitted(stays);
  for (int i = 0; i < 100'000; ++i) {
    Tenants::Tenant& passing = tenants.named(std::to_string(i));
    tenants.submitted(passing);
    CHECK(passing.service == stays.service);
    tenants.drawn(passing, 1);
    tenants.ended(passing);
    tenants.drawn(stays, 1);  // a fair policy serves both
    REQUIRE(tenants.size() <= 8);
  }
  CHECK(tenants.all().at("stays").requests == 1);
}

TEST_CASE("a scheduler's figures have the tenants that matter", "[scheduler]") {
  const Engine engine = must(Engine::load(golden_dir() / "llama-gqa.gguf", {.context = 64, .threads = 1}));
  Scheduler scheduler = must(Scheduler::create(engine, {.policy = fair_by_tenant(), .weights = {{"weighty", 3.0}}}));
  const auto request = [](std::string tenant, std::size_t tokens) {
    return Request{.prompt = {1, 2, 3},
                   .generate = {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore},
                   .tenant = std::move(tenant)};
  };
  for (int i = 0; i < 200; ++i) {
    RequestHandle handle = must(scheduler.submit(request("tenant " + std::to_string(i), 2)));
    must(scheduler.step());
    CHECK(scheduler.figures().tenants.at("tenant " + std::to_string(i)).requests == 1);
    while (!scheduler.idle()) must(scheduler.step());
    REQUIRE(scheduler.figures().tenants.size() <= 8);
  }
  const SchedulerFigures figures = scheduler.figures();
  CHECK(figures.finished == 200);
  CHECK(figures.tenants.at("weighty").weight == 3.0);
}

}  // namespace test_forgotten_tenants
