// Reads and writes keys and values one token at a time, in every layout: for files, checksums, comparisons and conversions. Preconditions:
// the view has the pages of the positions, and the processor can address the view's memory. (LayerOnHost, in layer_on_host.hpp, makes a view that the
// processor can address, of a cache in a GPU's memory for example.)
//
//   std::vector<float> key(kv::dim_of(*view.layout, {.layer = 0}));
//   kv::decode(view, {.layer = 0, .part = kv::KeyOrValue::key, .head = 0}, position, key.data());
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/kv/kv_view.hpp>

namespace tessera::kv {

// One head's keys or values in one layer. Values that are part of the keys (kv::Values::in_keys) have no HeadPart of their own.
struct HeadPart {
  std::size_t layer = 0;
  KeyOrValue part = KeyOrValue::key;
  std::size_t head = 0;
};

// Returns the layer's key_dim or value_dim.
[[nodiscard]] std::uint32_t dim_of(const KvLayout& layout, const HeadPart& of) noexcept;
// Returns the bytes of one record. A record is one token's key or value of the head.
[[nodiscard]] std::uint64_t record_bytes(const KvLayout& layout, const HeadPart& of) noexcept;

// Copy the records of positions [first, last) out of the cache and into it. Records lie one after another  [last - first][record_bytes].
void read_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last, std::byte* out) noexcept;
void write_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last,
                   const std::byte* records) noexcept;
// Converts the elements of the record at `position` to f32, and writes them to `out` [dim].
void decode(const KvView& kv, const HeadPart& of, std::uint64_t position, float* out) noexcept;
// Converts `values` [dim] to the cache's type, and writes the record at `position`.
void encode(const KvView& kv, const HeadPart& of, std::uint64_t position, const float* values) noexcept;

}  // namespace tessera::kv
