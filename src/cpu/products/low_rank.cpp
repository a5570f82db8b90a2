#include "cpu/products/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"

namespace tessera::cpu {

using backend::LowRankShape;
using backend::LowRankValues;

// The places of the parts of the buffer, and the sizes of their elements.
struct CpuLowRank::Layout {
  std::size_t number = 4;         // bytes of a number
  std::size_t block_bytes = 0;    // bytes of a block of rows of A; in tables: of a row
  std::uint64_t a_bytes = 0;      // bytes of one matrix of A
  std::size_t panels = 0, panel_bytes = 0;
  std::uint64_t b_at = 0, lengths_at = 0, bytes = 0;

  explicit Layout(const LowRankShape& shape) noexcept : number(shape.dtype == DType::f32 ? 4 : 2) {
    const auto whole = [](std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; };
    if (shape.is_table) {
      block_bytes = shape.rank * number;
      a_bytes = shape.inputs * block_bytes;
    } else {
      block_bytes = static_cast<std::size_t>(kLowRankBlock * whole(shape.inputs, kLowRankVector) * number);
      a_bytes = (shape.rank + kLowRankBlock - 1) / kLowRankBlock * block_bytes;
    }
    panels = static_cast<std::size_t>(whole(shape.outputs, kLowRankPanel) / kLowRankPanel);
    panel_bytes = shape.rank * kLowRankPanel * number;
    b_at = whole(shape.a_count * a_bytes, 64);
    lengths_at = b_at + shape.b_count * panels * panel_bytes;
    bytes = lengths_at + (shape.has_lengths ? shape.count * shape.outputs * sizeof(LowRankValues::Length) : 0);
  }
};

namespace {

LowRankType type_of(DType dtype) noexcept {
  return dtype == DType::f16 ? LowRankType::f16 : dtype == DType::bf16 ? LowRankType::bf16 : LowRankType::f32;
}

}  // namespace

std::uint64_t CpuLowRank::bytes_of(const LowRankShape& shape) noexcept { return Layout(shape).bytes; }

CpuLowRank::CpuLowRank(const LowRankShape& shape, Buffer buffer) noexcept
    : LowRank(shape), type_(type_of(shape.dtype)), buffer_(std::move(buffer)) {
  const Layout layout(shape);
  block_bytes_ = layout.block_bytes;
  a_bytes_ = layout.a_bytes;
  panels_ = layout.panels;
  panel_bytes_ = layout.panel_bytes;
  b_at_ = layout.b_at;
  lengths_at_ = layout.lengths_at;
}

Result<std::shared_ptr<const CpuLowRank>> CpuLowRank::make(Memory& memory, const LowRankShape& shape, const LowRankValues& values) {
  const Layout layout(shape);
  TESSERA_TRY(Buffer buffer, Buffer::allocate(memory, static_cast<std::size_t>(layout.bytes), "an adapter"));
  std::byte* const base = buffer.data();
  if (shape.is_table) {
    std::memcpy(base, values.a.data(), values.a.size());
  } else {
    std::memset(base, 0, static_cast<std::size_t>(shape.a_count * layout.a_bytes));
    const std::size_t vector = kLowRankVector * layout.number, row_bytes = static_cast<std::size_t>(shape.inputs * layout.number);
    for (std::uint64_t i = 0; i < shape.a_count * shape.rank; ++i) {
      const std::uint64_t rank = i % shape.rank;
      std::byte* to = base + i / shape.rank * layout.a_bytes + rank / kLowRankBlock * layout.block_bytes + rank % kLowRankBlock * vector;
      for (std::size_t at = 0; at < row_bytes; at += vector, to += kLowRankBlock * vector) {
        std::memcpy(to, values.a.data() + i * row_bytes + at, std::min(vector, row_bytes - at));
      }
    }
  }
  std::byte* const b = base + layout.b_at;
  std::memset(b, 0, static_cast<std::size_t>(layout.lengths_at - layout.b_at));
  for (std::uint64_t matrix = 0; matrix < shape.b_count; ++matrix) {
    for (std::uint64_t output = 0; output < shape.outputs; ++output) {
      const std::byte* from = values.b.data() + (matrix * shape.outputs + output) * shape.rank * layout.number;
      std::byte* const panel = b + (matrix * layout.panels + output / kLowRankPanel) * layout.panel_bytes;
      for (std::size_t r = 0; r < shape.rank; ++r) {
        std::memcpy(panel + (r * kLowRankPanel + output % kLowRankPanel) * layout.number, from + r * layout.number, layout.number);
      }
    }
  }
  if (shape.has_lengths) std::memcpy(base + layout.lengths_at, values.lengths.data(), values.lengths.size_bytes());
  return std::make_shared<const CpuLowRank>(shape, std::move(buffer));
}

const std::byte* CpuLowRank::a(std::uint64_t index) const noexcept {
  if (shape().is_table) return buffer_.data() + index * block_bytes_;
  return buffer_.data() + (shape().a_count == 1 ? 0 : index) * a_bytes_;
}

const std::byte* CpuLowRank::panel(std::uint64_t index, std::size_t panel) const noexcept {
  return buffer_.data() + b_at_ + ((shape().b_count == 1 ? 0 : index) * panels_ + panel) * panel_bytes_;
}

void CpuLowRank::factors(std::uint64_t index, std::size_t first, std::size_t count, double scale, float* out) const noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    LowRankValues::Length length;
    std::memcpy(&length, buffer_.data() + lengths_at_ + (index * shape().outputs + first + i) * sizeof length, sizeof length);
    const double square = length.base + 2.0 * scale * length.mixed + scale * scale * length.change;
    out[i] = square > 0.0 ? static_cast<float>(length.wanted / std::sqrt(square)) : 0.0f;
  }
}

}  // namespace tessera::cpu
