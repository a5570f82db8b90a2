// Makes KV caches from options: fills in defaults, makes layouts and pools.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"
#include "kv/prefix/prefix_probe.hpp"

namespace tessera::detail {

// Returns the layers at both ends that get a KV type of their own; none if that type equals the other layers'.
[[nodiscard]] WideLayers wide_layers(const KvOptions& options) noexcept;
// Returns `options`, with the values of `base` for options that are automatic.
[[nodiscard]] KvOptions resolve(const KvOptions& options, const KvOptions& base);
// Returns the library's defaults. The type stays automatic, because its default depends on the model.
[[nodiscard]] KvOptions default_kv_options();

// Checks resolved options. `options`: as the caller set them. Errors: invalid_argument, a value that its enum does not have, or an option
// that the caller set and that contradicts the others.
[[nodiscard]] Status check(const KvOptions& options, const KvOptions& resolved);

// Checks that the backend holds the KV types of all layers. Error: unsupported.
[[nodiscard]] Status check_kv_types(const backend::Backend& backend, const KvLayout& layout);
// Makes the layout of the model's cache. Errors: invalid_argument, more wide layers than layers that keep keys and values; unsupported,
// layer 0 has no mixer.
[[nodiscard]] Result<KvLayout> kv_layout(const ModelSpec& spec, const KvOptions& resolved);
// Bytes of a full sequence.
struct KvBytes {
  std::uint64_t kv = 0;    // keys, values and states, in all groups
  std::uint64_t host = 0;  // heap memory of the pages' bookkeeping
};
// Returns the bytes of a sequence of `context` tokens. Error: invalid_argument, too large to address.
[[nodiscard]] Result<KvBytes> kv_bytes(const KvLayout& layout, std::uint64_t context, const KvOptions& resolved,
                                       std::uint64_t budget);
// Checks that a budget (bytes; 0: none) has room for one page of every group and two states. Error: invalid_argument.
[[nodiscard]] Status check_budget(const KvLayout& layout, std::uint64_t budget);

// Makes the engine's pools. Pages lie in the backend's memory, if it has its own, else in the host's. Precondition: the engine's plan and
// backend are set.
[[nodiscard]] Result<KvPools> make_kv_pools(const Engine::State& engine);
// Makes a probe, which asks the prefix index what a new session with these options would find there. nullptr: these sessions do not use the
// index.
[[nodiscard]] std::shared_ptr<PrefixProbe> make_prefix_probe(const Engine::State& engine, const KvOptions& resolved);
// Returns whether a drop of tokens by this budget leaves to every window of the layout the tokens that the window sees, and a page more. If
// so, pages that a window has passed may be given back although the sequence is edited.
[[nodiscard]] bool leaves_windows(const TokenBudget& resolved, const KvLayout& layout) noexcept;
[[nodiscard]] Result<KvCache> make_kv_cache(const Engine::State& engine, const KvOptions& resolved,
                                            std::uint64_t context, const StreamOptions& stream = {});

}  // namespace tessera::detail
