// What a page of the KV cache looks like. A page holds page_tokens tokens of all layers, as blocks
// [layer][k|v][kv_head]; a block's inner layout is in kv/block.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera {

inline constexpr std::uint32_t kDefaultPageTokens = 32;
inline constexpr std::uint32_t kMaxHeadDim = 4096;

// The types that a cache can hold, and the bytes of one token's key (or value) of one head in one, its scale included (0
// if it is none of them).
[[nodiscard]] std::span<const DType> kv_types() noexcept;
[[nodiscard]] std::uint64_t kv_record_bytes(DType type, std::uint64_t head_dim) noexcept;

namespace kv {
enum class Part : std::uint8_t { key = 0, value = 1 };
}

// What of a layer's attention the cache depends on.
struct KvLayerShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;    // of one head
  std::uint32_t value_dim = 0;  // of one head

  bool operator==(const KvLayerShape&) const noexcept = default;
};

// Byte offsets inside a page of one layer's blocks.
struct KvLayerLayout {
  KvLayerShape shape;
  std::uint64_t k_offset = 0, v_offset = 0;  // of head 0
  std::uint64_t k_stride = 0, v_stride = 0;  // from head to head

  bool operator==(const KvLayerLayout&) const noexcept = default;
};

struct KvLayout {
  DType dtype = DType::f32;
  std::uint32_t page_tokens = 0;
  std::uint64_t page_bytes = 0;
  std::vector<KvLayerLayout> layers;

  // Of one token in all layers, K and V, scales included.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept { return page_bytes / page_tokens; }
  [[nodiscard]] std::uint64_t pages(std::uint64_t tokens) const noexcept {
    return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
  }
  bool operator==(const KvLayout&) const noexcept = default;
};

// Errors: a dtype that the cache cannot hold, a page that is not of 16, 32 or 64 tokens, heads of more than
// kMaxHeadDim, a page too large to address.
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;

}  // namespace tessera
