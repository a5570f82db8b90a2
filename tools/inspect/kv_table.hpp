// Computes the bytes of KV caches, and how many users fit into a memory. Only arithmetic: reads no file and loads no model.
//
// A user is one sequence. All bytes are the bytes of one device. If `tp` devices share a model (tensor parallelism), each device holds its
// part of the weights and ceil(kv_heads / tp) of a layer's KV heads; if there are more devices than heads, heads are replicated.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

namespace tessera::inspect {

// A group of equal layers.
struct KvLayers {
  std::uint64_t layers = 0, kv_heads = 0;
  std::uint64_t key_dim = 0, value_dim = 0;  // dimensions of one head
  std::uint64_t window = 0;                  // number of last tokens that are kept; 0: all
  DType type = DType::automatic;             // automatic: the type of the question
  bool latent = false;                       // values lie in the keys; types with scales cannot hold such keys
};

struct KvQuestion {
  std::vector<KvLayers> groups;
  KvLayout states;                      // states of recurrent layers; each device holds all of them
  std::uint64_t weights = 0;            // bytes on all devices together
  std::uint64_t tp = 1;                 // number of devices
  std::uint64_t page_tokens = 32;       // tokens of a page; a user has whole pages
  std::uint64_t context_limit = 0;      // tokens of the longest context that the model was made for; 0: no limit
  std::vector<std::uint64_t> contexts;  // tokens of a user, one for each column
  std::optional<std::uint64_t> memory, users;
  DType type = DType::automatic;        // automatic: every KV type
};

// The result for one type and context.
struct KvCell {
  std::uint64_t context = 0;
  std::uint64_t user_bytes = 0;                // one user's pages and states
  std::uint64_t need_bytes = 0;                // bytes of the weights and of all users (without `users`: one)
  std::optional<bool> fits;                    // need_bytes fit into `memory`; nullopt without `memory`
  std::optional<std::uint64_t> largest_users;  // users that fit beside the weights
};

inline constexpr std::uint64_t kAnyContext = std::numeric_limits<std::uint64_t>::max();

struct KvRow {
  DType type = DType::automatic;
  std::uint64_t token_bytes = 0;                 // bytes of a token in all layers, scales included
  std::vector<KvCell> cells;                     // [contexts]
  std::optional<std::uint64_t> largest_context;  // longest that fits for `users` users (or 1); kAnyContext: all layers have windows
};


// Returns the bytes of weights on one device.
[[nodiscard]] std::uint64_t device_weights(const KvQuestion& question) noexcept;

// Makes the table. Error: invalid_argument, a number is not possible or a result exceeds 64 bits.
[[nodiscard]] Result<std::vector<KvRow>> kv_table(const KvQuestion& question);

}  // namespace tessera::inspect
