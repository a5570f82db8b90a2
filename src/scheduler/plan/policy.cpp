#include <tessera/scheduler/policy.hpp>

#include <algorithm>

namespace tessera {
namespace {

class FirstCome final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "fcfs"; }
  [[nodiscard]] double rank(const PlannedRequest&, double) const noexcept override { return 0.0; }
};

class ByPriority final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "priority"; }
  [[nodiscard]] double rank(const PlannedRequest& request, double) const noexcept override { return request.priority; }
};

class ShortestFirst final : public Policy {
 public:
  explicit ShortestFirst(double aging) noexcept : aging_(aging) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "shortest"; }
  [[nodiscard]] double rank(const PlannedRequest& request, double now) const noexcept override {
    return static_cast<double>(request.remaining()) - aging_ * (now - request.submitted);
  }

 private:
  double aging_;
};

class EarliestDeadline final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "deadline"; }
  [[nodiscard]] double rank(const PlannedRequest& request, double) const noexcept override { return request.deadline; }
};

class FairByTenant final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "fair"; }
  [[nodiscard]] double rank(const PlannedRequest& request, double) const noexcept override {
    return request.tenant_service;
  }
};

class PrefixFirst final : public Policy {
 public:
  explicit PrefixFirst(double aging) noexcept : aging_(aging) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "prefix"; }
  [[nodiscard]] double rank(const PlannedRequest& request, double now) const noexcept override {
    const auto tokens = static_cast<double>(std::max<std::uint64_t>(request.prompt + request.drawn, 1));
    const double known = static_cast<double>(request.saved + request.computed) / tokens;
    return -known - aging_ * (now - request.submitted);
  }

 private:
  double aging_;
};

}  // namespace

double Policy::loss(const PlannedRequest& request, double) const noexcept {
  return static_cast<double>(request.computed) / static_cast<double>(std::max<std::uint64_t>(request.held, 1));
}

PolicyPtr first_come() { return std::make_shared<FirstCome>(); }
PolicyPtr by_priority() { return std::make_shared<ByPriority>(); }
PolicyPtr shortest_first(double aging) { return std::make_shared<ShortestFirst>(aging); }
PolicyPtr earliest_deadline() { return std::make_shared<EarliestDeadline>(); }
PolicyPtr fair_by_tenant() { return std::make_shared<FairByTenant>(); }
PolicyPtr prefix_first(double aging) { return std::make_shared<PrefixFirst>(aging); }

}  // namespace tessera
