#include "adapters/adapter_shelf.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

tessera::Result<tessera::Adapter> AdapterShelf::load(const std::filesystem::path& path) const {
  // Passes the model's source to the engine, because adapters with lengths (DoRA) need the model's weights. For other adapters the source
  // is opened, but no weight is read.
  if (embedded_ != nullptr) return engine_.adapter(path, {.base = embedded_.get()});
  auto base = tessera::open_model(base_);
  if (!base) return std::move(base).error();
  return engine_.adapter(path, {.base = base->get()});
}

tessera::Adapter AdapterShelf::take(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = std::ranges::find(kept_, path, &Kept::path); found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->adapter;
  }
  auto adapter = load(path);
  while (!adapter && adapter.error().code() == tessera::ErrorCode::over_budget && !kept_.empty()) {
    kept_.pop_back();
    adapter = load(path);
  }
  if (!adapter) {
    const bool is_full = adapter.error().code() == tessera::ErrorCode::over_budget || adapter.error().code() == tessera::ErrorCode::out_of_memory;
    ApiError refusal(is_full ? 503 : 400, fmt::format("The adapter could not be loaded: {}", adapter.error().text()), "model", "adapter_load_failed");
    if (is_full) refusal.retry_after = 1.0;
    throw refusal;
  }
  kept_.push_front({path, *adapter});
  return *std::move(adapter);
}

void AdapterShelf::drop(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const Kept& kept) { return kept.path == path; });
}

}  // namespace server
