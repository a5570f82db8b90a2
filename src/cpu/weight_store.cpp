#include "cpu/weight_store.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/error.hpp"
#include "cpu/workspace.hpp"
#include "formats/formats.hpp"

namespace tessera::cpu {

namespace {

// Bytes that a thread populates (makes the system back by memory) at a time: whole pages, even if pages are huge.
constexpr std::uint64_t kPopulatedBytes = 16 << 20;
// The most threads that populate at the same time.
constexpr std::size_t kMostPieces = 64;
// Bytes of a file that are read and packed at a time; if a panel has more bytes, one panel.
constexpr std::uint64_t kStagingBytes = 2 << 20;

}  // namespace

std::uint64_t WeightStore::matrix_bytes(const backend::MatrixShape& shape) noexcept { return aligned(packed_bytes(shape)); }

std::uint64_t WeightStore::vector_bytes(std::uint64_t n) noexcept { return aligned(n * sizeof(float)); }

std::uint64_t WeightStore::staging_bytes(const backend::MatrixShape& shape) noexcept {
  const std::uint64_t panel = panel_outputs(formats::packed_form_of(shape.dtype)) * row_bytes(shape);
  return std::max(std::min(kStagingBytes, panels_of(shape) * panel), panel);
}

Status WeightStore::reserve(std::uint64_t bytes, std::uint64_t staging) {
  TESSERA_TRY(weights_, Buffer::claim(memory_, bytes, "weights"));
  used_ = populated_ = 0;
  TESSERA_TRY(staging_, Buffer::allocate(memory_, staging, "reading weights"));
  return {};
}

Result<std::byte*> WeightStore::take(std::uint64_t bytes) noexcept {
  if (bytes > weights_.size() - used_) {
    return detail::make_error(ErrorCode::internal, "weights take more memory than was planned");
  }
  std::byte* at = weights_.data() + used_;
  used_ += bytes;
  return at;
}

// Makes the operating system back the memory of the weights up to `end` with real pages, before weights are written there. The system
// clears each page, which takes half of the time of loading. So all threads do it at once, in pieces of milliseconds; loading can be
// stopped between two pieces.
Status WeightStore::populate(const std::byte* end) noexcept {
  const std::size_t pieces = std::min(tasks_.slots(), kMostPieces);
  while (weights_.data() + populated_ < end) {
    std::atomic<bool> there = true;
    tasks_.for_each(pieces, 1, [&](std::size_t piece, std::byte*) {
      const std::uint64_t at = std::min<std::uint64_t>(populated_ + piece * kPopulatedBytes, weights_.size());
      if (!weights_.populate(at, std::min<std::uint64_t>(kPopulatedBytes, weights_.size() - at))) there = false;
    });
    if (!there) {
      return detail::make_error(ErrorCode::out_of_memory, "no memory for weights: {} bytes are needed, and {} were there",
                                weights_.size(), populated_);
    }
    populated_ = std::min<std::uint64_t>(populated_ + pieces * kPopulatedBytes, weights_.size());
  }
  return {};
}

// Reads and packs one matrix, whose first row is the reader's `first_row`.
Status WeightStore::pack(const backend::MatrixShape& shape, const backend::RowReader& read, std::uint64_t first_row, std::byte* to) {
  const PackedForm form = formats::packed_form_of(shape.dtype);
  const std::uint64_t bytes = row_bytes(shape), outputs = panel_outputs(form);
  const std::uint64_t rows_at_once = staging_.size() / (outputs * bytes) * outputs;
  if (rows_at_once == 0) return detail::make_error(ErrorCode::internal, "the staging buffer is smaller than a panel");
  for (std::uint64_t first = 0; first < shape.outputs; first += rows_at_once) {
    const std::uint64_t count = std::min(rows_at_once, shape.outputs - first);
    TESSERA_TRY_STATUS(read(first_row + first, count, staging_.bytes().first(count * bytes)));
    const std::uint64_t panels = (count + outputs - 1) / outputs;
    TESSERA_TRY_STATUS(populate(to + (first / outputs + panels) * panel_bytes(form, shape.inputs)));
    tasks_.for_each(panels, 1, [&](std::size_t panel, std::byte*) {
      const std::uint64_t row = panel * outputs;
      pack_panel(shape, staging_.data() + row * bytes, std::min(outputs, count - row),
                 to + (first / outputs + panel) * panel_bytes(form, shape.inputs));
    });
  }
  return {};
}

Result<const backend::Matrix*> WeightStore::add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read) {
  TESSERA_TRY(std::byte* packed, take(matrix_bytes(shape)));
  const PackedForm form = formats::packed_form_of(shape.dtype);
  const std::uint64_t one = panels_of(shape) * panel_bytes(form, shape.inputs);
  for (std::uint64_t i = 0; i < shape.count; ++i) TESSERA_TRY_STATUS(pack(shape, read, i * shape.outputs, packed + i * one));
  matrices_.push_back({.shape = shape, .form = form, .data = packed});
  all_quantised_ = all_quantised_ && form_layout(form).bits != 0;
  return &matrices_.back();
}

Result<const backend::Vector*> WeightStore::add_vector(std::span<const float> values) {
  TESSERA_TRY(std::byte* at, take(vector_bytes(values.size())));
  TESSERA_TRY_STATUS(populate(at + values.size_bytes()));
  std::memcpy(at, values.data(), values.size_bytes());
  vectors_.push_back({.data = reinterpret_cast<const float*>(at), .n = values.size()});
  return &vectors_.back();
}

Status WeightStore::scale_products(const backend::Matrix& weight, std::span<const float> factors) {
  if (&weight != &matrices_.back() || factors.size() != weight.shape.count) {
    return detail::make_error(ErrorCode::internal, "{} factors for other matrices than the {} that were added last", factors.size(),
                              weight.shape.count);
  }
  TESSERA_TRY(const backend::Vector* kept, add_vector(factors));
  matrices_.back().factors = kept->data;
  return {};
}

Status WeightStore::round_inputs(const backend::Matrix& weight, const InputRounding& how) {
  const std::size_t scales = how.scales.size();
  if (&weight != &matrices_.back() || (scales > 1 && scales != weight.shape.count) || (how.to == RoundedInputs::int8_with_zero && how.zeros.size() != scales)) {
    return detail::make_error(ErrorCode::internal, "{} scales of inputs for other matrices than the {} that were added last", scales, weight.shape.count);
  }
  matrices_.back().rounding = how;
  return {};
}

}  // namespace tessera::cpu
