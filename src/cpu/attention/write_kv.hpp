// Writes keys and values to the pages of the KV cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/kv/kv_view.hpp>
#include <tessera/extend/kv/records.hpp>

namespace tessera::cpu {

// Writes one row's key [key_dim] and value [value_dim] of one head into its slot, in the cache's type.
inline void write_kv(const KvView& kv, std::size_t layer, std::size_t kv_head, std::uint64_t position, const float* key,
                     const float* value) noexcept {
  kv::encode(kv, {.layer = layer, .part = kv::KeyOrValue::key, .head = kv_head}, position, key);
  kv::encode(kv, {.layer = layer, .part = kv::KeyOrValue::value, .head = kv_head}, position, value);
}

}  // namespace tessera::cpu
