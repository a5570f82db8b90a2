#include <tessera/unstable/scheduler/tenants.hpp>

#include <algorithm>
#include <utility>

namespace tessera {

namespace {

constexpr int kLooks = 4;  // number of idle tenants that each call of forget() checks; more than 1, because each call may follow one new idle tenant

}  // namespace

Tenants::Tenant& Tenants::named(std::string_view name) {
  if (const auto at = tenants_.find(name); at != tenants_.end()) return at->second;
  // Reserves memory first, because put_in() must not fail.
  if (const std::size_t n = tenants_.size() + 1; n > active_.capacity() || n > idle_.capacity()) {
    active_.reserve(2 * n);
    idle_.reserve(2 * n);
  }
  const auto made = tenants_.emplace(std::string(name), Entry{}).first;
  made->second.name = &made->first;
  return made->second;
}

void Tenants::set_weight(std::string_view name, double weight) {
  auto& entry = static_cast<Entry&>(named(name));
  entry.weight = weight;
  entry.has_weight = true;
  if (std::exchange(entry.is_idle, false)) take_out(idle_, entry);
}

void Tenants::take_out(std::vector<Entry*>& list, const Entry& entry) noexcept {
  list.back()->place = entry.place;
  list[entry.place] = list.back();
  list.pop_back();
}

void Tenants::put_in(std::vector<Entry*>& list, Entry& entry) noexcept {
  entry.place = list.size();
  list.push_back(&entry);  // named() has reserved the memory
}

// Raises floor_ to the least service of all tenants that have requests; if no tenant has requests, to `without`. floor_ is the least
// service with which a tenant starts: so a tenant that was idle cannot claim the service that it did not use in the meantime.
void Tenants::raise_floor(double without) noexcept {
  const auto least = std::ranges::min_element(active_, {}, &Entry::service);
  floor_ = std::max(floor_, least != active_.end() ? (*least)->service : without);
}

void Tenants::submitted(Tenant& tenant) noexcept {
  if (tenant.requests++ > 0) return;
  auto& entry = static_cast<Entry&>(tenant);
  if (std::exchange(entry.is_idle, false)) take_out(idle_, entry);
  raise_floor(floor_);
  tenant.service = std::max(tenant.service, floor_);
  put_in(active_, entry);
  forget();
}

void Tenants::ended(Tenant& tenant) noexcept {
  if (--tenant.requests > 0) return;
  auto& entry = static_cast<Entry&>(tenant);
  take_out(active_, entry);
  raise_floor(tenant.service);
  entry.is_idle = !entry.has_weight;
  if (entry.is_idle) put_in(idle_, entry);
  forget();
}

void Tenants::forget() noexcept {
  for (int look = 0; look < kLooks && !idle_.empty(); ++look) {
    if (next_look_ >= idle_.size()) next_look_ = 0;
    const Entry& entry = *idle_[next_look_];
    if (entry.service > floor_) {
      ++next_look_;
      continue;
    }
    take_out(idle_, entry);
    tenants_.erase(tenants_.find(*entry.name));
  }
}

std::map<std::string, Tenants::Tenant, std::less<>> Tenants::all() const {
  return {tenants_.begin(), tenants_.end()};
}

}  // namespace tessera
