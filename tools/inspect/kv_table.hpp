// What KV caches take, and how many users fit a memory: arithmetic alone. Nothing is read or loaded here.
//
// A user is one sequence. All bytes are those of one device: of `tp` devices that share a model, each holds its part of
// the weights and ceil(kv_heads / tp) of a layer's KV heads; with more devices than heads, heads are replicated.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

namespace tessera::inspect {

// Layers that are alike.
struct KvLayers {
  std::uint64_t layers = 0, kv_heads = 0;
  std::uint64_t key_dim = 0, value_dim = 0;  // of one head
  std::uint64_t window = 0;                  // the last tokens that are kept; 0: all
  DType type = DType::automatic;             // automatic: the one that is asked about
  bool latent = false;                       // values are in the keys, which no type with scales holds
};

struct KvQuestion {
  std::vector<KvLayers> groups;
  KvLayout states;                      // recurrent layers have their states in it; each device has all of them
  std::uint64_t weights = 0;            // bytes, on all devices together
  std::uint64_t tp = 1;                 // devices
  std::uint64_t page_tokens = 32;       // a user holds whole pages
  std::uint64_t context_limit = 0;      // positions that the model knows; 0: no limit
  std::vector<std::uint64_t> contexts;  // tokens of a user, one column each
  std::optional<std::uint64_t> memory, users;
  DType type = DType::automatic;        // automatic: every KV type
};

// One type and context.
struct KvCell {
  std::uint64_t context = 0;
  std::uint64_t user_bytes = 0;                // one user's pages and states
  std::uint64_t need_bytes = 0;                // of all users (one, if `users` is not said), and the weights
  std::optional<bool> fits;                    // need_bytes in the memory, if one is said
  std::optional<std::uint64_t> largest_users;  // that fit beside the weights
};

inline constexpr std::uint64_t kAnyContext = std::numeric_limits<std::uint64_t>::max();

struct KvRow {
  DType type = DType::automatic;
  std::uint64_t token_bytes = 0;                 // a token in all layers, scales included
  std::vector<KvCell> cells;                     // one for each of `contexts`
  std::optional<std::uint64_t> largest_context;  // of `users` (or of one) that fits; kAnyContext if windows bound all
};


// The weights on one device.
[[nodiscard]] std::uint64_t device_weights(const KvQuestion& question) noexcept;

// Errors: invalid_argument for what makes no sense, or passes 64 bits.
[[nodiscard]] Result<std::vector<KvRow>> kv_table(const KvQuestion& question);

}  // namespace tessera::inspect
