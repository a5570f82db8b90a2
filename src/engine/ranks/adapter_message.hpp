// The message with one change of an adapter. Rank 0 sends it to the ranks in other processes, and each rank uses its part of the change.
#pragma once

#include <type_traits>

#include "adapters/adapter_file.hpp"
#include "ranks/step_bytes.hpp"

namespace tessera::detail {

struct AdapterMessage {
  Hash128 content;        // hash of the whole adapter
  bool is_first = false;  // true: this is the adapter's first change, and replaces an adapter of the same content
  AdapterTensor change;
};

template <class Bytes, class Values>
void block(Bytes& bytes, Values& of) {
  using Value = typename std::remove_cvref_t<Values>::value_type;
  if constexpr (std::is_same_v<Bytes, ByteWriter>) {
    bytes.number(std::uint64_t{of.size()});
    bytes.add(std::as_bytes(std::span(of)));
  } else {
    std::uint64_t n = 0;
    bytes.number(n);
    const auto taken = bytes.take(n <= UINT64_MAX / sizeof(Value) ? n * sizeof(Value) : UINT64_MAX);
    of.resize(taken.size() / sizeof(Value));
    if (!taken.empty()) std::memcpy(of.data(), taken.data(), taken.size());
  }
}

// Writes or reads a message without its kind. `change` is const when writing.
template <class Bytes, class Change>
void each_number(Bytes& bytes, std::conditional_t<std::is_same_v<Bytes, ByteWriter>, const Hash128, Hash128>& content,
                 std::conditional_t<std::is_same_v<Bytes, ByteWriter>, const bool, bool>& is_first, Change& change) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  number(content.low, content.high, is_first, change.tensor, change.rank, change.dtype, change.a_count, change.b_count, change.scale,
         change.is_embedding);
  block(bytes, change.a);
  block(bytes, change.b);
  block(bytes, change.lengths);
}

}  // namespace tessera::detail
