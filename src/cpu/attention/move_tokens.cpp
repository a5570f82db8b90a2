#include "cpu/attention/move_tokens.hpp"

#include <array>

#include <tessera/extend/kv/records.hpp>

#include "cpu/attention/rope.hpp"

namespace tessera::cpu {

void move_tokens(const KvView& kv, std::size_t layer, std::size_t head, const backend::KvMove& move,
                 const backend::RopeTable& rope, std::span<const float> turn) noexcept {
  const kv::HeadPart keys{.layer = layer, .part = kv::KeyOrValue::key, .head = head};
  const kv::HeadPart values{.layer = layer, .part = kv::KeyOrValue::value, .head = head};
  const bool has_values = kv.layout->layer(layer).shape.parts().size() > 1;  // beside the keys
  alignas(64) std::array<std::byte, kMaxHeadDim * sizeof(float)> buffer;
  // Tokens move to lower positions in ascending order, so no token is overwritten before it has been moved.
  for (std::uint64_t i = 0; i < move.count; ++i) {
    if (has_values) {
      kv::read_records(kv, values, move.from + i, move.from + i + 1, buffer.data());
      kv::write_records(kv, values, move.to + i, move.to + i + 1, buffer.data());
    }
    if (turn.empty()) {
      kv::read_records(kv, keys, move.from + i, move.from + i + 1, buffer.data());
      kv::write_records(kv, keys, move.to + i, move.to + i + 1, buffer.data());
    } else {
      auto* key = reinterpret_cast<float*>(buffer.data());
      kv::decode(kv, keys, move.from + i, key);
      cpu::rope(turn.data(), turn.size() / 2, rope.pairs == RopePairs::interleaved, key);
      kv::encode(kv, keys, move.to + i, key);
    }
  }
}

}  // namespace tessera::cpu
