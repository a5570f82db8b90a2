// Makes KV caches from options: fills in defaults, checks the options, and makes layouts, pools and caches.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"
#include "kv/prefix/prefix_probe.hpp"

namespace tessera::detail {

// Returns the first and last layers that have another KV type than the rest (KvOptions::wide). If all layers have the same type, the
// result's dtype is automatic.
[[nodiscard]] WideLayers wide_layers(const KvOptions& options) noexcept;
// Returns `options`, with each automatic value replaced by the value of `base`.
[[nodiscard]] KvOptions resolve(const KvOptions& options, const KvOptions& base);
// Returns the library's defaults. The KV type stays automatic, because its default depends on the model.
[[nodiscard]] KvOptions default_kv_options();

// Checks options after resolve(). `options` are the caller's options, `resolved` the result of resolve(). Errors: invalid_argument, an enum
// has an undefined value, or an option that the caller set contradicts other options.
[[nodiscard]] Status check(const KvOptions& options, const KvOptions& resolved);

// Checks that the backend can store every layer's KV type. Error: unsupported.
[[nodiscard]] Status check_kv_types(const backend::Backend& backend, const KvLayout& layout);
// Makes the layout of the model's cache. Errors: invalid_argument, WideLayers names more layers than have keys and values of their own;
// unsupported, layer 0 has no mixer.
[[nodiscard]] Result<KvLayout> kv_layout(const ModelSpec& spec, const KvOptions& resolved);
// The memory that one sequence needs if it fills the whole context, in bytes.
struct KvBytes {
  std::uint64_t kv = 0;    // keys, values and states, in all groups
  std::uint64_t host = 0;  // heap bytes for the bookkeeping of the pages
};
// Returns the memory for a sequence of `context` tokens. `budget` is EngineOptions::kv_budget, on which the size of slabs depends. Error:
// invalid_argument, the size does not fit into the address space.
[[nodiscard]] Result<KvBytes> kv_bytes(const KvLayout& layout, std::uint64_t context, const KvOptions& resolved,
                                       std::uint64_t budget);
// Checks that a budget of bytes (0: no limit) is enough for one page of every group and two states. Error: invalid_argument.
[[nodiscard]] Status check_budget(const KvLayout& layout, std::uint64_t budget);

// Makes the engine's pools. The pages lie in the backend's own memory (a GPU's) if it has any, otherwise in host memory. Precondition: the
// engine's plan and backend are set.
[[nodiscard]] Result<KvPools> make_kv_pools(const Engine::State& engine);
// Makes a probe of the prefix index. The probe counts the tokens of a prompt that a new session with these options would find in the
// index. Returns nullptr if the options have no layout (kv_layout()). Precondition: the options use the index.
[[nodiscard]] std::shared_ptr<PrefixProbe> make_prefix_probe(const Engine::State& engine, const KvOptions& resolved);
// Returns whether each drop of this budget keeps the tokens that any window of the layout sees, and one page more. If true, pages that a
// window has passed may be freed even after drops have edited the sequence, because no window will reach back to them.
[[nodiscard]] bool leaves_windows(const TokenBudget& resolved, const KvLayout& layout) noexcept;
[[nodiscard]] Result<KvCache> make_kv_cache(const Engine::State& engine, const KvOptions& resolved,
                                            std::uint64_t context, const StreamOptions& stream = {});

}  // namespace tessera::detail
