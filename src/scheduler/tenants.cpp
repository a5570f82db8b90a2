#include <tessera/scheduler/tenants.hpp>

#include <algorithm>
#include <limits>

namespace tessera {

Tenants::Tenant& Tenants::named(std::string_view name) {
  const auto at = tenants_.find(name);
  return at != tenants_.end() ? at->second : tenants_.emplace(std::string(name), Tenant{}).first->second;
}

void Tenants::set_weight(std::string_view name, double weight) { named(name).weight = weight; }

void Tenants::submitted(Tenant& tenant) noexcept {
  if (tenant.requests++ > 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, other] : tenants_) {
    if (&other != &tenant && other.requests > 0) least = std::min(least, other.service);
  }
  if (least != std::numeric_limits<double>::infinity()) tenant.service = std::max(tenant.service, least);
}

}  // namespace tessera
