#include <tessera/extend/kv/records.hpp>

#include "kv/block.hpp"

namespace tessera::kv {
namespace {

// Calls fn(slot) for each position of [first, last), in order. `slot` (kv::Slot) reads and writes the token's numbers in the head's block.
template <class Fn>
void for_each_slot(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last, Fn&& fn) noexcept {
  const KvLayerView layer = kv.layer(of.layer);
  const std::size_t page_tokens = layer.page_tokens;
  const std::size_t dim = dim_of(*kv.layout, of);
  visit(layer.dtype, of.part, [&]<class C>(std::type_identity<C>) {
    for (std::uint64_t position = first; position < last; ++position) {
      const std::size_t page = layer.page_of(position), slot = layer.slot_of(position);
      if (of.part == KeyOrValue::key) fn(Slot<C, KeyOrValue::key>(layer.k_block(of.head, page), page_tokens, dim, slot));
      else fn(Slot<C, KeyOrValue::value>(layer.v_block(of.head, page), page_tokens, dim, slot));
    }
  });
}

}  // namespace

std::uint32_t dim_of(const KvLayout& layout, const HeadPart& of) noexcept {
  const KvLayerShape& shape = layout.layer(of.layer).shape;
  return shape.dim(of.part);
}

std::uint64_t record_bytes(const KvLayout& layout, const HeadPart& of) noexcept {
  return record_bytes(layout.layer(of.layer).dtype, of.part, dim_of(layout, of));
}

void read_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last, std::byte* out) noexcept {
  const std::uint64_t bytes = record_bytes(*kv.layout, of);
  for_each_slot(kv, of, first, last, [&](const auto& slot) {
    slot.read(out);
    out += bytes;
  });
}

void write_records(const KvView& kv, const HeadPart& of, std::uint64_t first, std::uint64_t last,
                   const std::byte* records) noexcept {
  const std::uint64_t bytes = record_bytes(*kv.layout, of);
  for_each_slot(kv, of, first, last, [&](const auto& slot) {
    slot.write(records);
    records += bytes;
  });
}

void decode(const KvView& kv, const HeadPart& of, std::uint64_t position, float* out) noexcept {
  for_each_slot(kv, of, position, position + 1, [&](const auto& slot) { slot.decode(out); });
}

void encode(const KvView& kv, const HeadPart& of, std::uint64_t position, const float* values) noexcept {
  for_each_slot(kv, of, position, position + 1, [&](const auto& slot) { slot.encode(values); });
}

}  // namespace tessera::kv
