#include "engine/ranks/served_adapters.hpp"

#include "core/error.hpp"
#include "engine/ranks/adapter_message.hpp"
#include "ranks/processes/rank_messages.hpp"

namespace tessera::detail {

Status ServedAdapters::check(const AdapterTensor& change) const {
  const auto wrong = [] { return make_error(ErrorCode::device_error, "rank 0 has sent a change of an adapter that makes no sense"); };
  if (change.tensor >= places_.tensors().size() || change.rank == 0 || change.rank > kMaxAdapterRank) return wrong();
  if (change.dtype != DType::f32 && change.dtype != DType::f16 && change.dtype != DType::bf16) return wrong();
  const AdaptedTensor& tensor = places_.tensors()[change.tensor];
  const auto is_count = [&](std::uint64_t count) { return count == 1 || count == tensor.count; };
  const std::uint64_t number = change.dtype == DType::f32 ? 4 : 2;
  const std::uint64_t a = change.a_count * (change.is_embedding ? tensor.outputs : tensor.inputs) * change.rank * number;
  const std::uint64_t b = change.b_count * (change.is_embedding ? tensor.inputs : tensor.outputs) * change.rank * number;
  if (!is_count(change.a_count) || !is_count(change.b_count) || change.a.size() != a || change.b.size() != b) return wrong();
  return change.lengths.empty() || change.lengths.size() == tensor.count * tensor.outputs ? Status() : Status(wrong());
}

Status ServedAdapters::take(std::span<const std::byte> message) {
  ByteReader reader(message);
  MessageKind kind{};
  bool went_on = false;
  AdapterMessage of;
  reader.number(kind);
  reader.number(went_on);
  each_number(reader, of.content, of.is_first, of.change);
  if (!reader.is_at_end()) return make_error(ErrorCode::device_error, "rank 0 has sent a part of an adapter that makes no sense");
  TESSERA_TRY_STATUS(check(of.change));
  if (of.is_first) forget(of.content);
  Served& served = adapters_[of.content];
  for (const AdapterPlaces::Weight& weight : places_.weights_of(of.change.tensor)) {
    if (!weight.binding.own.here) continue;
    const std::uint64_t bytes = change_bytes(of.change, weight, backend_);
    TESSERA_TRY_STATUS(room_.take(bytes));
    served.bytes += bytes;
    TESSERA_TRY(auto change, make_change(of.change, places_.tensors()[of.change.tensor], weight, backend_, &source_));
    served.weights.add(*weight.matrix, std::move(change));
  }
  return {};
}

void ServedAdapters::forget(const Hash128& content) noexcept {
  const auto of = adapters_.find(content);
  if (of == adapters_.end()) return;
  room_.give_back(of->second.bytes);
  adapters_.erase(of);
}

const backend::AdapterWeights* ServedAdapters::find(const Hash128& content) const noexcept {
  const auto of = adapters_.find(content);
  return of != adapters_.end() ? &of->second.weights : nullptr;
}

}  // namespace tessera::detail
