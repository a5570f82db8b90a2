#include "models/model_names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ollama/names.hpp"

namespace server {

std::size_t ModelNames::find(std::string_view name) const {
  if (name.empty() && options_.needs_name) throw ApiError(400, fmt::format("Name a model: this server has {}.", all()), "model");
  if (name.empty()) return 0;
  auto found = std::ranges::find(ids_, name);
  if (found == ids_.end()) found = std::ranges::find_if(ids_, [&](const std::string& id) { return ollama::without_latest(id) == ollama::without_latest(name); });
  if (found != ids_.end()) return static_cast<std::size_t>(found - ids_.begin());
  if (ids_.size() == 1 && options_.any_name) return 0;
  throw no_such_model(name);
}

std::size_t ModelNames::find_exactly(std::string_view name) const {
  const auto found = std::ranges::find(ids_, name);
  if (found == ids_.end()) throw no_such_model(name);
  return static_cast<std::size_t>(found - ids_.begin());
}

bool ModelNames::has(std::string_view name) const noexcept { return std::ranges::find(ids_, name) != ids_.end(); }

ApiError ModelNames::no_such_model(std::string_view name) const {
  return {404, fmt::format("There is no model \"{}\" here; this server has {}.", name, all()), "model", "model_not_found"};
}

// Returns the names for an error, at most 20 names.
std::string ModelNames::all() const {
  constexpr std::size_t kMost = 20;
  std::string names;
  for (std::size_t i = 0; i < ids_.size() && i < kMost; ++i) names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", ids_[i]);
  if (ids_.size() > kMost) names += fmt::format(" and {} more, which GET /v1/models lists", ids_.size() - kMost);
  return names;
}

}  // namespace server
