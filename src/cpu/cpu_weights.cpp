// The CPU backend's loading: sizes, buffers, packing.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "cpu/attention/reference_attention.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/for_each.hpp"
#include "formats/formats.hpp"

namespace tessera::cpu {

namespace {

constexpr std::uint64_t kAlignment = 64;
// Bytes that a thread populates (has the system back by memory) at a time: whole pages, also if pages are huge.
constexpr std::uint64_t kPopulatedBytes = 16 << 20;
// The most threads that populate at the same time.
constexpr std::size_t kMostPieces = 64;
// Bytes of a file that are read and packed at a time; if a panel has more bytes, one panel.
constexpr std::uint64_t kStagingBytes = 2 << 20;

// The activations that products read: all that come before the logits in the enum.
constexpr std::size_t kInputActs = static_cast<std::size_t>(backend::Act::logits);

std::uint64_t widest_input(const backend::WorkspaceShape& shape) noexcept {
  const std::uint64_t widest = *std::max_element(std::begin(shape.columns), std::begin(shape.columns) + kInputActs);
  return std::max(widest, shape.expert_dim);
}

std::uint64_t state_floats(const backend::WorkspaceShape& shape) noexcept {
  return std::uint64_t{shape.rows} * shape.max_heads * 2;
}

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Returns the most rows of a group (tile) that any product of these kernels reads.
std::size_t most_tile_rows(const Kernels& kernels) noexcept {
  std::size_t most = 1;
  for (const auto& family : kernels.linear) {
    for (const LinearPair& pair : family) most = std::max({most, pair.few.tile_rows, pair.many.tile_rows});
  }
  return most;
}

}  // namespace

std::uint64_t CpuBackend::matrix_bytes(const MatrixShape& shape) const noexcept { return aligned(packed_bytes(shape)); }

std::uint64_t CpuBackend::vector_bytes(std::uint64_t n) const noexcept { return aligned(n * sizeof(float)); }

std::uint64_t CpuBackend::staging_bytes(const MatrixShape& shape) const noexcept {
  const std::uint64_t panel = panel_outputs(formats::packed_form_of(shape.dtype)) * row_bytes(shape);
  return std::max(std::min(kStagingBytes, panels_of(shape) * panel), panel);
}

Status CpuBackend::reserve_weights(std::uint64_t bytes, std::uint64_t staging) {
  TESSERA_TRY(weights_, Buffer::claim(memory_, bytes, "weights"));
  weights_used_ = weights_populated_ = 0;
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

// Makes the system back the weights' pages up to `end` by memory. The system clears each page, which takes half of the time of loading. So
// all threads do it, in pieces of milliseconds, between which loading can be stopped.
Status CpuBackend::populate_weights(const std::byte* end) noexcept {
  const std::size_t pieces = std::min(slots_, kMostPieces);
  while (weights_.data() + weights_populated_ < end) {
    std::atomic<bool> there = true;
    for_each(pieces, 1, [&](std::size_t piece, std::byte*) {
      const std::uint64_t at = std::min<std::uint64_t>(weights_populated_ + piece * kPopulatedBytes, weights_.size());
      if (!weights_.populate(at, std::min<std::uint64_t>(kPopulatedBytes, weights_.size() - at))) there = false;
    });
    if (!there) {
      return detail::make_error(ErrorCode::out_of_memory, "no memory for weights: {} bytes are needed, and {} were there",
                                weights_.size(), weights_populated_);
    }
    weights_populated_ = std::min<std::uint64_t>(weights_populated_ + pieces * kPopulatedBytes, weights_.size());
  }
  return {};
}

Result<const backend::Matrix*> CpuBackend::add_matrix(const MatrixShape& shape, const backend::RowReader& read) {
  TESSERA_TRY(std::byte* packed, take_weights(matrix_bytes(shape)));
  const PackedForm form = formats::packed_form_of(shape.dtype);
  const std::uint64_t bytes = row_bytes(shape), outputs = panel_outputs(form);
  const std::uint64_t rows_at_once = staging_.size() / (outputs * bytes) * outputs;
  if (rows_at_once == 0) return detail::make_error(ErrorCode::internal, "the staging buffer is smaller than a panel");
  const auto pack = [&](std::uint64_t first_row, std::byte* to) -> Status {  // packs one matrix
    for (std::uint64_t first = 0; first < shape.outputs; first += rows_at_once) {
      const std::uint64_t count = std::min(rows_at_once, shape.outputs - first);
      TESSERA_TRY_STATUS(read(first_row + first, count, staging_.bytes().first(count * bytes)));
      const std::uint64_t panels = (count + outputs - 1) / outputs;
      TESSERA_TRY_STATUS(populate_weights(to + (first / outputs + panels) * panel_bytes(form, shape.inputs)));
      for_each(panels, 1, [&](std::size_t panel, std::byte*) {
        const std::uint64_t row = panel * outputs;
        pack_panel(shape, staging_.data() + row * bytes, std::min(outputs, count - row),
                   to + (first / outputs + panel) * panel_bytes(form, shape.inputs));
      });
    }
    return {};
  };
  const std::uint64_t one = panels_of(shape) * panel_bytes(form, shape.inputs);
  for (std::uint64_t i = 0; i < shape.count; ++i) TESSERA_TRY_STATUS(pack(i * shape.outputs, packed + i * one));
  matrices_.push_back({.shape = shape, .form = form, .data = packed});
  all_quantised_ = all_quantised_ && form_layout(form).bits != 0;
  return &matrices_.back();
}

Result<const backend::Vector*> CpuBackend::add_vector(std::span<const float> values) {
  TESSERA_TRY(std::byte* at, take_weights(vector_bytes(values.size())));
  TESSERA_TRY_STATUS(populate_weights(at + values.size_bytes()));
  std::memcpy(at, values.data(), values.size_bytes());
  vectors_.push_back({.data = reinterpret_cast<const float*>(at), .n = values.size()});
  return &vectors_.back();
}

Status CpuBackend::scale_products(const Matrix& weight, std::span<const float> factors) {
  if (&weight != &matrices_.back() || factors.size() != weight.shape.count) {
    return detail::make_error(ErrorCode::internal, "{} factors for other matrices than the {} that were added last", factors.size(),
                              weight.shape.count);
  }
  TESSERA_TRY(const Vector* kept, add_vector(factors));
  matrices_.back().factors = kept->data;
  return {};
}

std::size_t CpuBackend::scratch_bytes(const backend::WorkspaceShape& shape) const noexcept {
  std::size_t bytes = reference_attention_floats(shape.max_group, shape.max_key_dim, shape.max_value_dim) * sizeof(float);
  for (const auto& family : kernels_.attention) {
    for (const Attend& kernel : family) {
      const std::size_t queries = std::max<std::size_t>(kernel.queries, shape.max_group);
      bytes = std::max(bytes, attend_scratch(queries, shape.max_key_dim, shape.max_value_dim).bytes);
    }
  }
  std::size_t of_kernels = 0;
  for (const auto& family : kernels_.linear) {
    for (const LinearPair& pair : family) of_kernels = std::max({of_kernels, pair.few.scratch_bytes, pair.many.scratch_bytes});
  }
  bytes = std::max(bytes, of_kernels);
  if (shape.head_inputs != 0) bytes = std::max(bytes, head_rows_bytes(shape.head_inputs) + of_kernels);
  // A task also needs room for one row as floats, before it is prepared.
  return aligned(std::max<std::size_t>(bytes, widest_input(shape) * sizeof(float)));
}

std::uint64_t CpuBackend::prepared_bytes(const backend::WorkspaceShape& shape) const noexcept {
  const std::uint64_t columns = widest_input(shape);
  std::uint64_t bytes = 0;
  for (std::size_t form = 0; form < kInputForms; ++form) {
    if (static_cast<InputForm>(form) == InputForm::f32) continue;  // kernels read f32 activations where they are
    bytes = std::max<std::uint64_t>(bytes, row_layout(static_cast<InputForm>(form), columns).bytes);
  }
  return numerics_ == Numerics::reference ? 0 : (shape.rows + most_tile_rows(kernels_) - 1) * bytes;  // rounded up to whole groups
}

// Returns the bytes of the prepared rows of all experts. Each expert's rows are in groups of a tile's rows, and its last group may not be
// full.
std::uint64_t CpuBackend::slot_row_bytes(const backend::WorkspaceShape& shape) const noexcept {
  const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
  const std::uint64_t rows = slots + std::min<std::uint64_t>(slots, shape.n_experts) * (most_tile_rows(kernels_) - 1);
  std::uint64_t bytes = 0;
  for (std::size_t form = 0; form < kInputForms; ++form) {
    for (const std::uint64_t columns : {shape.expert_inputs, shape.expert_dim}) {
      bytes = std::max<std::uint64_t>(bytes, row_layout(static_cast<InputForm>(form), columns).bytes);
    }
  }
  return slots == 0 ? 0 : rows * bytes;
}

std::uint64_t CpuBackend::expert_bytes(const backend::WorkspaceShape& shape) const noexcept {
  const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
  if (slots == 0) return 0;
  return aligned(slots * std::max(shape.expert_inputs, shape.expert_dim) * sizeof(float)) +
         aligned(slots * shape.expert_dim * sizeof(float)) + aligned(slot_row_bytes(shape)) +
         aligned(5 * slots * sizeof(std::uint32_t)) + aligned(2 * shape.n_experts * sizeof(std::uint64_t));
}

std::uint64_t CpuBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool is_logits = i == static_cast<std::size_t>(Act::logits);
    bytes += aligned((is_logits ? shape.output_rows : shape.rows) * shape.columns[i] * sizeof(float));
  }
  bytes += aligned(std::uint64_t{shape.rows} * 2 * shape.rope_dims * sizeof(float));
  bytes += aligned(state_floats(shape) * sizeof(float));
  bytes += aligned(split_floats(slots_, shape.max_group, shape.max_value_dim) * sizeof(float));
  return bytes + aligned(vote_bytes(shape)) + prepared_bytes(shape) + expert_bytes(shape) + slots_ * scratch_bytes(shape);
}

Status CpuBackend::reserve_workspace(const backend::WorkspaceShape& shape) {
  TESSERA_TRY(workspace_, Buffer::allocate(memory_, workspace_bytes(shape), "the workspace"));
  std::byte* at = workspace_.data();
  const auto take = [&at](std::uint64_t bytes) {
    std::byte* taken = at;
    at += aligned(bytes);
    return taken;
  };
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool is_logits = i == static_cast<std::size_t>(Act::logits);
    const std::uint64_t rows = is_logits ? shape.output_rows : shape.rows;
    acts_[i].data = reinterpret_cast<float*>(take(rows * shape.columns[i] * sizeof(float)));
    acts_[i].capacity = shape.columns[i];
  }
  rope_floats_ = std::size_t{shape.rows} * 2 * shape.rope_dims;
  rope_ = reinterpret_cast<float*>(take(rope_floats_ * sizeof(float)));
  prepared_ = take(prepared_bytes(shape));
  states_ = reinterpret_cast<float*>(take(state_floats(shape) * sizeof(float)));
  const std::size_t partials = split_floats(slots_, shape.max_group, shape.max_value_dim);
  partials_ = reinterpret_cast<float*>(take(partials * sizeof(float)));
  if (shape.voters != 0) {
    voting_.scores = reinterpret_cast<float*>(take(vote_bytes(shape)));
    voting_.most = shape.voters;
    voting_.heads = shape.max_heads;
    voting_.stride = rounded_up(shape.vote_keys, 16);
    voting_.rows.reserve(shape.voters);
    voting_.at.reserve(shape.rows);
  }
  if (shape.used_experts != 0) {
    const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
    experts_.gate = reinterpret_cast<float*>(take(slots * std::max(shape.expert_inputs, shape.expert_dim) * sizeof(float)));
    experts_.up = reinterpret_cast<float*>(take(slots * shape.expert_dim * sizeof(float)));
    experts_.rows = take(slot_row_bytes(shape));
    auto* lists = reinterpret_cast<std::uint32_t*>(take(5 * slots * sizeof(std::uint32_t)));
    experts_.chosen = lists, experts_.slot_of = lists + slots, experts_.row_of = lists + 2 * slots;
    experts_.expert_of = lists + 3 * slots;
    experts_.weights = reinterpret_cast<float*>(lists + 4 * slots);
    auto* places = reinterpret_cast<std::uint64_t*>(take(2 * shape.n_experts * sizeof(std::uint64_t)));
    experts_.first = places, experts_.at = places + shape.n_experts;
    experts_.products.reserve(2 * std::min<std::uint64_t>(slots, shape.n_experts));
    experts_.kinds.reserve(shape.n_experts);
  }
  scratch_size_ = scratch_bytes(shape);
  scratch_ = take(slots_ * scratch_size_);
  max_rows_ = shape.rows;
  turns_.reserve(shape.ropes);
  rows_.reserve(shape.rows);
  runs_.reserve(shape.rows);
  states_after_.reserve(shape.rows);
  attention_plan_.reserve(shape.rows);
  sequences_.reserve(shape.rows);
  return {};
}

}  // namespace tessera::cpu
