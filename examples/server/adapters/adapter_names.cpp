#include "adapters/adapter_names.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

AdapterNames::AdapterNames(std::vector<ConfiguredAdapter> adapters) {
  for (ConfiguredAdapter& adapter : adapters) entries_.push_back({.adapter = std::move(adapter)});
}

NamedAdapter AdapterNames::use(const Entry& entry) { return {.adapter = entry.adapter, .use = entry.users}; }

std::optional<NamedAdapter> AdapterNames::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.adapter.name == name; });
  return found == entries_.end() ? std::optional<NamedAdapter>() : use(*found);
}

std::optional<NamedAdapter> AdapterNames::at(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return number < entries_.size() ? use(entries_[number]) : std::optional<NamedAdapter>();
}

std::vector<AdapterNames::View> AdapterNames::views() const {
  const std::lock_guard lock(mutex_);
  std::vector<View> views;
  for (const Entry& entry : entries_) views.push_back({entry.adapter, static_cast<std::size_t>(entry.users.use_count() - 1)});
  return views;
}

void AdapterNames::add(ConfiguredAdapter adapter) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.adapter.name == adapter.name; })) {
    throw ApiError(400, fmt::format("There is an adapter \"{}\" already: unload it first, or choose another name.", adapter.name), "lora_name");
  }
  entries_.push_back({.adapter = std::move(adapter)});
}

ConfiguredAdapter AdapterNames::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.adapter.name == name; });
  if (found == entries_.end()) throw ApiError(404, fmt::format("There is no adapter \"{}\" here.", name), "lora_name", "not_found");
  ConfiguredAdapter removed = std::move(found->adapter);
  entries_.erase(found);
  return removed;
}

}  // namespace server
