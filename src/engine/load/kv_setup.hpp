// From options to KV caches: defaults, layouts, pools.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// What a layer's type can differ by: none, if those would be of the same type as the others.
[[nodiscard]] WideLayers wide_layers(const KvOptions& options) noexcept;
// What `options` leave automatic is as in `base`.
[[nodiscard]] KvOptions resolve(const KvOptions& options, const KvOptions& base);
// The library's defaults; only the type stays automatic where it does, since it depends on the model.
[[nodiscard]] KvOptions default_kv_options();

// Errors: values that no enum has, and what `options` ask for explicitly although it cannot be.
[[nodiscard]] Status check(const KvOptions& options, const KvOptions& resolved);

// Error: a layer has a KV type that the backend does not hold.
[[nodiscard]] Status check_kv_types(const backend::Backend& backend, const KvLayout& layout);
// A group for each window that layers have. Error: more wide layers than there are.
[[nodiscard]] Result<KvLayout> kv_layout(const ModelSpec& spec, const KvOptions& resolved);
// What a full sequence of `context` tokens takes in all groups, and what its pages and their bookkeeping take on the
// heap.
struct KvBytes {
  std::uint64_t kv = 0;
  std::uint64_t host = 0;
};
[[nodiscard]] Result<KvBytes> kv_bytes(const KvLayout& layout, std::uint64_t context, const KvOptions& resolved,
                                       std::uint64_t budget);
// Error: a budget, in bytes, that has no room for one page of every group (0: none is set).
[[nodiscard]] Status check_budget(const KvLayout& layout, std::uint64_t budget);

// With the engine's plan and backend: KV pages are in the backend's memory, if it has one, else in the host's.
[[nodiscard]] Result<KvPools> make_kv_pools(const Engine::State& engine);
// Whether a drop leaves every window of the layout the tokens that it sees, and a page more: then windows give back what they have
// passed, although the budget's sequence is edited.
[[nodiscard]] bool leaves_windows(const TokenBudget& resolved, const KvLayout& layout) noexcept;
[[nodiscard]] Result<KvCache> make_kv_cache(const Engine::State& engine, const KvOptions& resolved,
                                            std::uint64_t context, const StreamOptions& stream = {});

}  // namespace tessera::detail
