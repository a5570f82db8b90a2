// Keys and values one token at a time, whatever the layout: for files, checksums, comparisons and conversions. The
// positions must be held by the view, in memory that the processor can address: kv/layer_on_host.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/kv/kv_view.hpp>

namespace tessera::kv {

// One head's keys or values in one layer; values that are stored, not those in keys.
struct HeadPart {
  std::size_t layer = 0;
  Part part = Part::key;
  std::size_t head = 0;
};

// The key_dim or value_dim of the layer.
[[nodiscard]] std::uint32_t dim_of(const KvLayout& layout, const HeadPart& of) noexcept;
// Of one record of this part.
[[nodiscard]] std::uint64_t record_bytes(const KvLayout& layout, const HeadPart& of) noexcept;

// Records of positions [first, last), one after another  [last - first][record_bytes].
void read_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last, std::byte* out) noexcept;
void write_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last,
                   const std::byte* records) noexcept;
// One position's elements as f32  [dim].
void decode(const KvView& kv, const HeadPart& of, std::uint64_t position, float* out) noexcept;
void encode(const KvView& kv, const HeadPart& of, std::uint64_t position, const float* values) noexcept;

}  // namespace tessera::kv
