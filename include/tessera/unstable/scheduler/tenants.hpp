// Counts how much service each tenant (user of a scheduler) has had, for fair_by_tenant(). Sheng et al., "Fairness in Serving Large
// Language Models" (OSDI 2024), algorithm 2: a tenant's counter (`service`) is the sum of its tokens times their prices, divided by its
// weight. When a tenant comes back after a time without requests, its counter is raised to the *floor*, so that it is not served first for
// all the time of its absence. The floor is the least counter of the tenants that have requests; if no tenant has requests, the counter of
// the last tenant that had some.
//
// If a tenant has no requests and its counter is not above the floor, it is forgotten: its counter would be raised to the floor anyway. So
// memory and the time of each call grow with the tenants that have requests, not with all tenants that were ever named. Exception: a tenant
// with a weight of its own is never forgotten.
//
//   tessera::Tenants tenants;
//   auto& tenant = tenants.named("a");
//   tenants.submitted(tenant);
//   tenants.drawn(tenant, 20);  // tenant.service grows
//   tenants.ended(tenant);      // do not use `tenant` after this
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/scheduler/tenant_figures.hpp>

namespace tessera {

class Tenants {
 public:
  explicit Tenants(TokenPrices prices = {}) noexcept : prices_(prices) {}
  Tenants(Tenants&&) noexcept = default;
  Tenants& operator=(Tenants&&) noexcept = default;

  using Tenant = TenantFigures;

  // Returns the tenant of this name, and makes it at the first call. The reference is valid until the last of the tenant's requests has
  // ended. Throws bad_alloc; then nothing has changed.
  Tenant& named(std::string_view name);
  // Sets the weight by which the tenant's service is divided. Throws bad_alloc.
  void set_weight(std::string_view name, double weight);

  // Counts a new request of the tenant.
  void submitted(Tenant& tenant) noexcept;
  // Counts the end of a request of the tenant. If it was the last one, the tenant may be forgotten: do not use the reference after that.
  void ended(Tenant& tenant) noexcept;
  void computed_prompt(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.prompt / tenant.weight;
  }
  void drawn(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.output / tenant.weight;
  }

  // Returns a copy of all tenants that are not forgotten. Throws bad_alloc.
  [[nodiscard]] std::map<std::string, Tenant, std::less<>> all() const;
  // Returns the number of tenants that are not forgotten.
  [[nodiscard]] std::size_t size() const noexcept { return tenants_.size(); }

 private:
  // Invariant: a tenant with requests is in active_. A tenant that had requests and has none now is in idle_, unless it has a weight of its
  // own. Both lists have room for all tenants.
  struct Entry : Tenant {
    const std::string* name = nullptr;
    bool has_weight = false;       // set_weight() was called for the tenant
    bool is_idle = false;          // the tenant is in idle_
    std::size_t place = 0;         // index in active_ or idle_
  };
  static void take_out(std::vector<Entry*>& list, const Entry& entry) noexcept;
  static void put_in(std::vector<Entry*>& list, Entry& entry) noexcept;
  void raise_floor(double without) noexcept;
  void forget() noexcept;

  TokenPrices prices_;
  std::map<std::string, Entry, std::less<>> tenants_;
  std::vector<Entry*> active_, idle_;
  std::size_t next_look_ = 0;  // index in idle_ from which forget() goes on
  double floor_ = 0.0;         // the floor: least service of a tenant that comes back; never falls
};

}  // namespace tessera
