#include "cpu/products/low_rank.hpp"

#include <cmath>
#include <cstring>

#include "core/error.hpp"

namespace tessera::cpu {

using backend::LowRankShape;
using backend::LowRankValues;

// Where the parts of the buffer are, and the sizes of their elements.
struct CpuLowRank::Layout {
  std::size_t number = 4;     // bytes of a number
  std::size_t a_stride = 0;   // bytes of a row of A
  std::uint64_t a_rows = 0;   // rows of all A together
  std::size_t panels = 0, panel_bytes = 0;
  std::uint64_t b_at = 0, lengths_at = 0, bytes = 0;

  explicit Layout(const LowRankShape& shape) noexcept : number(shape.dtype == DType::f32 ? 4 : 2) {
    const auto whole = [](std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; };
    // A table's rows are read one at a time, and their numbers are converted one by one.
    a_rows = shape.is_table ? shape.inputs : shape.a_count * shape.rank;
    a_stride = static_cast<std::size_t>((shape.is_table ? shape.rank : whole(shape.inputs, kLowRankVector)) * number);
    panels = static_cast<std::size_t>(whole(shape.outputs, kLowRankPanel) / kLowRankPanel);
    panel_bytes = shape.rank * kLowRankPanel * number;
    b_at = whole(a_rows * a_stride, 64);
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
  a_stride_ = layout.a_stride;
  panels_ = layout.panels;
  panel_bytes_ = layout.panel_bytes;
  b_at_ = layout.b_at;
  lengths_at_ = layout.lengths_at;
}

Result<std::shared_ptr<const CpuLowRank>> CpuLowRank::make(Memory& memory, const LowRankShape& shape, const LowRankValues& values) {
  const Layout layout(shape);
  TESSERA_TRY(Buffer buffer, Buffer::allocate(memory, static_cast<std::size_t>(layout.bytes), "an adapter"));
  std::byte* const base = buffer.data();
  const std::size_t row = static_cast<std::size_t>((shape.is_table ? shape.rank : shape.inputs) * layout.number);
  for (std::uint64_t i = 0; i < layout.a_rows; ++i) {
    std::memcpy(base + i * layout.a_stride, values.a.data() + i * row, row);
    std::memset(base + i * layout.a_stride + row, 0, layout.a_stride - row);
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
  const std::uint64_t row = shape().is_table ? index : shape().a_count == 1 ? 0 : index * shape().rank;
  return buffer_.data() + row * a_stride_;
}

const std::byte* CpuLowRank::panel(std::uint64_t index, std::size_t panel) const noexcept {
  return buffer_.data() + b_at_ + ((shape().b_count == 1 ? 0 : index) * panels_ + panel) * panel_bytes_;
}

void CpuLowRank::factors(std::uint64_t index, std::size_t panel, double scale, float* out) const noexcept {
  const std::uint64_t first = panel * kLowRankPanel, last = std::min<std::uint64_t>(first + kLowRankPanel, shape().outputs);
  for (std::uint64_t i = first; i < last; ++i) {
    LowRankValues::Length length;
    std::memcpy(&length, buffer_.data() + lengths_at_ + (index * shape().outputs + i) * sizeof length, sizeof length);
    const double square = length.base + 2.0 * scale * length.mixed + scale * scale * length.change;
    out[i - first] = square > 0.0 ? static_cast<float>(length.wanted / std::sqrt(square)) : 0.0f;
  }
}

}  // namespace tessera::cpu
