// Counts the service of each tenant, for fair_by_tenant(). Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024),
// algorithm 2: a tenant's counter is its tokens times prices over its weight. The counter of a tenant that comes back after a pause
// is lifted to the least counter of the tenants that have requests, or of the last tenant that had any, so that no tenant saves up
// service.
//
// A tenant without requests whose counter is below that least counter is forgotten: its counter would be lifted anyway. So memory and
// the time of each call follow the tenants that have requests, not all tenants that were ever named. Exception: a tenant with a weight
// of its own is never forgotten.
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

#include <tessera/scheduler/tenant_figures.hpp>

namespace tessera {

class Tenants {
 public:
  explicit Tenants(TokenPrices prices = {}) noexcept : prices_(prices) {}
  Tenants(Tenants&&) noexcept = default;
  Tenants& operator=(Tenants&&) noexcept = default;

  using Tenant = TenantFigures;

  // Returns the tenant of this name, and makes it when it is first named. The reference is valid until the last of the tenant's
  // requests has ended. Throws bad_alloc; then nothing has changed.
  Tenant& named(std::string_view name);
  // Throws bad_alloc.
  void set_weight(std::string_view name, double weight);

  // Counts a request of a tenant that named() has given.
  void submitted(Tenant& tenant) noexcept;
  // Counts the end of a request. The tenant may be forgotten with its last request: do not use the reference after that.
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
  // Invariant: a tenant with requests is in active_. A tenant that had some, and has no weight of its own, is in idle_. Both lists
  // have room for all tenants.
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
  std::size_t next_look_ = 0;  // place in idle_
  double floor_ = 0.0;         // least service of a tenant that comes back; never falls
};

}  // namespace tessera
