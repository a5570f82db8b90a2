#include "cuda/products/low_rank.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/guard.hpp"

namespace tessera::cuda {

using backend::LowRankShape;
using backend::LowRankTerm;

namespace {

// Offsets of the numbers in the buffer, in bytes.
struct Layout {
  std::uint64_t b = 0, lengths = 0, bytes = 0;

  explicit Layout(const LowRankShape& shape) noexcept {
    const std::uint64_t number = shape.dtype == DType::f32 ? 4 : 2;
    const auto whole = [](std::uint64_t n) { return (n + 255) / 256 * 256; };
    b = whole(shape.a_count * shape.rank * shape.inputs * number);
    lengths = b + whole(shape.b_count * shape.outputs * shape.rank * number);
    bytes = lengths + (shape.has_lengths ? whole(shape.count * shape.outputs * sizeof(backend::LowRankValues::Length)) : 0);
  }
};

const DeviceLowRank& change_of(const LowRankTerm& term) noexcept { return static_cast<const DeviceLowRank&>(*term.change); }
float scale_of(const LowRankTerm& term) noexcept { return term.scale * term.change->shape().scale; }

}  // namespace

std::uint64_t DeviceLowRank::bytes_of(const LowRankShape& shape) noexcept { return Layout(shape).bytes; }

Result<std::shared_ptr<const DeviceLowRank>> DeviceLowRank::make(std::shared_ptr<DeviceMemory> memory, const LowRankShape& shape,
                                                                 const backend::LowRankValues& values) {
  const Layout layout(shape);
  TESSERA_TRY(Buffer buffer, Buffer::allocate(*memory, static_cast<std::size_t>(layout.bytes), "an adapter"));
  const Transfer parts[] = {
      {.to = buffer.data(), .from = values.a.data(), .bytes = values.a.size()},
      {.to = buffer.data() + layout.b, .from = values.b.data(), .bytes = values.b.size()},
      {.to = buffer.data() + layout.lengths, .from = values.lengths.data(), .bytes = shape.has_lengths ? values.lengths.size_bytes() : 0}};
  if (!memory->write(parts)) return detail::device_error("copying an adapter to the device");
  return std::make_shared<const DeviceLowRank>(shape, std::move(memory), std::move(buffer));
}

LowRankNumber DeviceLowRank::number() const noexcept {
  return shape().dtype == DType::f32 ? LowRankNumber::f32 : shape().dtype == DType::f16 ? LowRankNumber::f16 : LowRankNumber::bf16;
}
const std::byte* DeviceLowRank::b() const noexcept { return buffer_.data() + Layout(shape()).b; }
const backend::LowRankValues::Length* DeviceLowRank::lengths() const noexcept {
  if (!shape().has_lengths) return nullptr;
  return reinterpret_cast<const backend::LowRankValues::Length*>(buffer_.data() + Layout(shape()).lengths);
}

Status LowRankChanges::begin(const std::shared_ptr<Device>& device, StepArena& arena, std::span<const backend::ChangedRows> changes) {
  TESSERA_TRY_STATUS(rows_.set(arena, changes, [](const backend::ChangedRows& change) { return change.rows; }));
  std::uint64_t bytes = 0;
  for (const backend::ChangedRows& change : changes) bytes = std::max(bytes, change.rows.size() * change.numbers * sizeof(float));
  if (bytes <= t_.size()) return {};
  TESSERA_TRY(t_, DeviceBuffer::allocate(device, std::max(bytes, 2 * t_.size()), "the changes of adapters"));
  return {};
}

Status LowRankChanges::add(const Device& device, const KernelTable& kernels, const LowRankTerm& term, const DeviceRows& in,
                           const DeviceRows& out) const {
  const DeviceLowRank& change = change_of(term);
  const LowRankShape& shape = change.shape();
  const RowLists::List& rows = rows_[term.rows];
  if (rows.count == 0) return {};
  TESSERA_TRY_STATUS(device.launch(kernels.low_rank_down,
                                   {.x = rows.count,
                                    .y = (shape.rank + kLowRankWarps - 1) / kLowRankWarps,
                                    .z = static_cast<std::uint32_t>(shape.count)},
                                   kLowRankThreads, 0,
                                   LowRankDownArgs{.a = change.a(),
                                                   .x = in.data,
                                                   .rows = rows.rows,
                                                   .t = t(),
                                                   .inputs = shape.inputs,
                                                   .rank = shape.rank,
                                                   .x_stride = in.columns,
                                                   .scale = scale_of(term),
                                                   .number = change.number(),
                                                   .shares_a = shape.a_count == 1 ? 1u : 0u,
                                                   .padding = 0}));
  return add_up(device, kernels, term, out);
}

Status LowRankChanges::add_of_tokens(const Device& device, const KernelTable& kernels, const LowRankTerm& term, float factor,
                                     const std::uint32_t* tokens, const DeviceRows& out) const {
  const DeviceLowRank& change = change_of(term);
  const RowLists::List& rows = rows_[term.rows];
  if (rows.count == 0) return {};
  TESSERA_TRY_STATUS(device.launch(kernels.low_rank_tokens, {.x = rows.count}, kLowRankThreads, 0,
                                   LowRankTokensArgs{.a = change.a(),
                                                     .tokens = tokens,
                                                     .rows = rows.rows,
                                                     .t = t(),
                                                     .rank = change.shape().rank,
                                                     .scale = factor * scale_of(term),
                                                     .number = change.number(),
                                                     .padding = 0}));
  return add_up(device, kernels, term, out);
}

Status LowRankChanges::add_up(const Device& device, const KernelTable& kernels, const LowRankTerm& term, const DeviceRows& out) const {
  const DeviceLowRank& change = change_of(term);
  const LowRankShape& shape = change.shape();
  const RowLists::List& rows = rows_[term.rows];
  const auto blocks = static_cast<std::uint32_t>((shape.outputs + kLowRankThreads - 1) / kLowRankThreads);
  return device.launch(kernels.low_rank_up, {.x = rows.count, .y = blocks, .z = static_cast<std::uint32_t>(shape.is_table ? 1 : shape.count)},
                       kLowRankThreads, 0,
                       LowRankUpArgs{.b = change.b(),
                                     .lengths = change.lengths(),
                                     .rows = rows.rows,
                                     .t = t(),
                                     .out = out.data,
                                     .outputs = shape.outputs,
                                     .scale = static_cast<double>(scale_of(term)),
                                     .rank = shape.rank,
                                     .out_stride = out.columns,
                                     .number = change.number(),
                                     .shares_b = shape.b_count == 1 ? 1u : 0u});
}

}  // namespace tessera::cuda
