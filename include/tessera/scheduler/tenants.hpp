// What each tenant has been served, for fair_by_tenant(). Sheng et al., "Fairness in Serving Large Language Models" (OSDI
// 2024), algorithm 2: a counter a tenant of tokens times prices over the tenant's weight; a tenant that comes back after a
// pause is lifted to the least of those that wait, so that nobody saves up service.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera {

struct TokenPrices {
  double prompt = 1.0;  // of a computed token of a prompt
  double output = 2.0;  // of a drawn token
};

class Tenants {
 public:
  explicit Tenants(TokenPrices prices = {}) noexcept : prices_(prices) {}

  struct Tenant {
    double weight = 1.0;
    double service = 0.0;
    std::uint64_t requests = 0;  // that have been submitted and have not ended
  };

  // Made when it is first named. Stays where it is. May throw bad_alloc.
  Tenant& named(std::string_view name);
  void set_weight(std::string_view name, double weight);

  void submitted(Tenant& tenant) noexcept;
  void ended(Tenant& tenant) noexcept { --tenant.requests; }
  void computed_prompt(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.prompt / tenant.weight;
  }
  void drawn(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.output / tenant.weight;
  }
  [[nodiscard]] const std::map<std::string, Tenant, std::less<>>& all() const noexcept { return tenants_; }

 private:
  TokenPrices prices_;
  std::map<std::string, Tenant, std::less<>> tenants_;
};

}  // namespace tessera
