// Makes KV caches from options: fills in defaults, checks the options, and makes layouts, pools and caches.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"
#include "kv/prefix/prefix_probe.hpp"

namespace tessera::detail {

// Returns the first and last layers that get another KV type than the rest (KvOptions::wide). The result is empty if there are none, or
// if their type is also the type of the rest.
[[nodiscard]] WideLayers wide_layers(const KvOptions& options) noexcept;
// Returns `options` in which each automatic value is replaced by the value of `base`.
[[nodiscard]] KvOptions resolve(const KvOptions& options, const KvOptions& base);
// Returns the library's defaults. The KV type stays automatic, because its default depends on the model.
[[nodiscard]] KvOptions default_kv_options();

// Checks options after resolve(). `options` are the ones that the caller set, `resolved` the result of resolve(). Errors:
// invalid_argument, an enum has a value that it does not define, or an option that the caller set contradicts the others.
[[nodiscard]] Status check(const KvOptions& options, const KvOptions& resolved);

// Checks that the backend can store every layer's KV type. Error: unsupported.
[[nodiscard]] Status check_kv_types(const backend::Backend& backend, const KvLayout& layout);
// Makes the layout of the model's cache. Errors: invalid_argument, WideLayers names more layers than there are layers with keys and
// values; unsupported, layer 0 has no mixer.
[[nodiscard]] Result<KvLayout> kv_layout(const ModelSpec& spec, const KvOptions& resolved);
// Memory for one sequence of the whole context, in bytes.
struct KvBytes {
  std::uint64_t kv = 0;    // keys, values and states, in all groups
  std::uint64_t host = 0;  // heap memory for the bookkeeping of the pages
};
// Returns the memory for a sequence of `context` tokens. Error: invalid_argument, the size does not fit into the address space.
[[nodiscard]] Result<KvBytes> kv_bytes(const KvLayout& layout, std::uint64_t context, const KvOptions& resolved,
                                       std::uint64_t budget);
// Checks that a budget of bytes (0: no limit) has room for one page of every group and two states. Error: invalid_argument.
[[nodiscard]] Status check_budget(const KvLayout& layout, std::uint64_t budget);

// Makes the engine's pools. If the backend has memory of its own (a GPU's), the pages lie there, else in host memory. Precondition: the
// engine's plan and backend are set.
[[nodiscard]] Result<KvPools> make_kv_pools(const Engine::State& engine);
// Makes a probe: an object that finds out how many tokens a new session with these options would find in the prefix index. Returns
// nullptr if sessions with these options do not use the index.
[[nodiscard]] std::shared_ptr<PrefixProbe> make_prefix_probe(const Engine::State& engine, const KvOptions& resolved);
// Returns whether each drop of this budget keeps, for every window of the layout, the tokens that the window sees and one page more. If
// so, pages that lie before a window may be given back even after drops have edited the sequence.
[[nodiscard]] bool leaves_windows(const TokenBudget& resolved, const KvLayout& layout) noexcept;
[[nodiscard]] Result<KvCache> make_kv_cache(const Engine::State& engine, const KvOptions& resolved,
                                            std::uint64_t context, const StreamOptions& stream = {});

}  // namespace tessera::detail
