// What each tenant has been served, for fair_by_tenant(). Sheng et al., "Fairness in Serving Large Language Models" (OSDI
// 2024), algorithm 2: a counter a tenant of tokens times prices over the tenant's weight. A tenant that comes back after a pause
// is lifted to the least counter of the tenants that have requests, or of the last one that had any, so that nobody saves up
// service.
//
// A tenant without requests whose counter is below that is forgotten: it would be lifted to there anyway, so nothing is changed
// by that. Memory and the time of each call follow the tenants that have requests, not those that were ever named. Exception: a
// tenant with a weight of its own is never forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct TokenPrices {
  double prompt = 1.0;  // of a computed token of a prompt
  double output = 2.0;  // of a drawn token
};

class Tenants {
 public:
  explicit Tenants(TokenPrices prices = {}) noexcept : prices_(prices) {}
  Tenants(Tenants&&) noexcept = default;
  Tenants& operator=(Tenants&&) noexcept = default;

  struct Tenant {
    double weight = 1.0;
    double service = 0.0;
    std::uint64_t requests = 0;  // that have been submitted and have not ended
  };

  // The tenant of this name, made when it is first named. It stays where it is until the last of its requests has ended.
  // Throws bad_alloc; then nothing has changed.
  Tenant& named(std::string_view name);
  // Throws bad_alloc.
  void set_weight(std::string_view name, double weight);

  // Counts a request of a tenant that named() has given.
  void submitted(Tenant& tenant) noexcept;
  // The last request's end may be the tenant's: do not use it after that.
  void ended(Tenant& tenant) noexcept;
  void computed_prompt(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.prompt / tenant.weight;
  }
  void drawn(Tenant& tenant, std::uint64_t tokens) const noexcept {
    tenant.service += static_cast<double>(tokens) * prices_.output / tenant.weight;
  }

  // A copy of all tenants that are not forgotten. Throws bad_alloc.
  [[nodiscard]] std::map<std::string, Tenant, std::less<>> all() const;
  // How many these are.
  [[nodiscard]] std::size_t size() const noexcept { return tenants_.size(); }

 private:
  // Invariant: a tenant with requests is in active_. A tenant that had some, and has no weight of its own, is in idle_. Both lists
  // have room for all tenants.
  struct Entry : Tenant {
    const std::string* name = nullptr;
    bool has_weight = false;       // of its own
    bool is_idle = false;          // it is in idle_
    std::size_t place = 0;         // in its list
  };
  static void take_out(std::vector<Entry*>& list, const Entry& entry) noexcept;
  static void put_in(std::vector<Entry*>& list, Entry& entry) noexcept;
  void raise_floor(double without) noexcept;
  void forget() noexcept;

  TokenPrices prices_;
  std::map<std::string, Entry, std::less<>> tenants_;
  std::vector<Entry*> active_, idle_;
  std::size_t next_look_ = 0;  // place in idle_
  double floor_ = 0.0;         // service of whoever comes back, at least; never falls
};

}  // namespace tessera
