// The CPU backend's loading half: sizes, buffers, packing.
#include <algorithm>
#include <cstring>

#include "cpu/attention.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/linear.hpp"
#include "support/error.hpp"

namespace tessera::cpu {

namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kStagingBytes = 1 << 20;  // read and packed at a time, or one row if that is more

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::uint64_t CpuBackend::matrix_bytes(const MatrixShape& shape) const noexcept { return aligned(packed_bytes(shape)); }

std::uint64_t CpuBackend::vector_bytes(std::uint64_t n) const noexcept { return aligned(n * sizeof(float)); }

std::uint64_t CpuBackend::staging_bytes(const MatrixShape& shape) const noexcept {
  return std::max(std::min(kStagingBytes, shape.outputs * row_bytes(shape)), row_bytes(shape));
}

Status CpuBackend::reserve_weights(std::uint64_t bytes, std::uint64_t staging) {
  TESSERA_TRY(weights_, Buffer::allocate(memory_, bytes, "weights"));
  TESSERA_TRY(staging_, Buffer::allocate(memory_, staging, "reading weights"));
  return {};
}

void CpuBackend::finish_loading() noexcept { staging_ = Buffer(); }

Result<std::byte*> CpuBackend::take_weights(std::uint64_t bytes) noexcept {
  if (bytes > weights_.size() - weights_used_) {
    return detail::make_error(ErrorCode::internal, "weights take more memory than was planned");
  }
  std::byte* at = weights_.data() + weights_used_;
  weights_used_ += bytes;
  return at;
}

Result<const backend::Matrix*> CpuBackend::add_matrix(const MatrixShape& shape, const backend::RowReader& read) {
  TESSERA_TRY(std::byte* packed, take_weights(matrix_bytes(shape)));
  const std::uint64_t bytes = row_bytes(shape);
  const std::uint64_t rows_at_once = staging_.size() / bytes;
  if (rows_at_once == 0) return detail::make_error(ErrorCode::internal, "the staging buffer is smaller than a row");
  for (std::uint64_t first = 0; first < shape.outputs; first += rows_at_once) {
    const std::uint64_t count = std::min(rows_at_once, shape.outputs - first);
    TESSERA_TRY_STATUS(read(first, count, staging_.bytes().first(count * bytes)));
    pack_rows(shape, first, count, staging_.data(), packed);
  }
  matrices_.push_back({.shape = shape, .data = packed});
  return &matrices_.back();
}

Result<const backend::Vector*> CpuBackend::add_vector(std::span<const float> values) {
  TESSERA_TRY(std::byte* at, take_weights(vector_bytes(values.size())));
  std::memcpy(at, values.data(), values.size_bytes());
  vectors_.push_back({.data = reinterpret_cast<const float*>(at), .n = values.size()});
  return &vectors_.back();
}

std::size_t CpuBackend::scratch_floats(const backend::WorkspaceShape& shape) const noexcept {
  const std::size_t linear = linear_scratch_floats(shape.rows);
  const std::size_t attention = attention_scratch_floats(shape.max_group, shape.max_key_dim, shape.max_value_dim);
  return aligned(std::max(linear, attention) * sizeof(float)) / sizeof(float);
}

std::uint64_t CpuBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool is_logits = i == static_cast<std::size_t>(Act::logits);
    bytes += aligned((is_logits ? shape.output_rows : shape.rows) * shape.columns[i] * sizeof(float));
  }
  bytes += aligned(std::uint64_t{shape.rows} * shape.rope_dim * sizeof(float));
  return bytes + slots_ * scratch_floats(shape) * sizeof(float);
}

Status CpuBackend::reserve_workspace(const backend::WorkspaceShape& shape) {
  TESSERA_TRY(workspace_, Buffer::allocate(memory_, workspace_bytes(shape), "the workspace"));
  std::byte* at = workspace_.data();
  const auto take = [&at](std::uint64_t floats) {
    auto* taken = reinterpret_cast<float*>(at);
    at += aligned(floats * sizeof(float));
    return taken;
  };
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool is_logits = i == static_cast<std::size_t>(Act::logits);
    acts_[i].data = take((is_logits ? shape.output_rows : shape.rows) * shape.columns[i]);
    acts_[i].capacity = shape.columns[i];
  }
  rope_ = take(std::uint64_t{shape.rows} * shape.rope_dim);
  scratch_size_ = scratch_floats(shape);
  scratch_ = take(slots_ * scratch_size_);
  max_rows_ = shape.rows;
  rows_.reserve(shape.rows);
  sequences_.reserve(shape.rows);
  return {};
}

}  // namespace tessera::cpu
