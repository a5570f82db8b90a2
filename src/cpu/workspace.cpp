#include "cpu/workspace.hpp"

#include <algorithm>
#include <iterator>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/attention/reference_attention.hpp"
#include "cpu/attention/voters.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/products/prepared_rows.hpp"
#include "cpu/products/product.hpp"

namespace tessera::cpu {

namespace {

// Number of the activations that products read: all activations before the logits in the enum.
constexpr std::size_t kInputActs = static_cast<std::size_t>(backend::Act::logits);

std::uint64_t widest_input(const backend::WorkspaceShape& shape) noexcept {
  const std::uint64_t widest = *std::max_element(std::begin(shape.columns), std::begin(shape.columns) + kInputActs);
  return std::max(widest, shape.expert_dim);
}

// Returns the most rows of a group (tile) that any product of these kernels reads.
std::size_t most_tile_rows(const Kernels& kernels) noexcept {
  std::size_t most = 1;
  for (const auto& family : kernels.linear) {
    for (const LinearPair& pair : family) most = std::max({most, pair.few.tile_rows, pair.many.tile_rows});
  }
  return most;
}

// Returns the bytes of the prepared rows of a task of head_linear().
std::size_t head_rows_bytes(std::uint64_t inputs, Numerics numerics) noexcept {
  std::size_t bytes = 0;
  for (std::size_t form = 0; form < kInputForms; ++form) {
    if (static_cast<InputForm>(form) == InputForm::f32) continue;  // kernels read f32 activations where they are
    bytes = std::max(bytes, row_layout(static_cast<InputForm>(form), inputs).bytes);
  }
  return numerics == Numerics::reference ? 0 : kHeadRows * bytes;
}

std::size_t scratch_bytes_of(const backend::WorkspaceShape& shape, const WorkspaceRules& rules) noexcept {
  const Kernels& kernels = rules.kernels;
  std::size_t bytes =
      reference_attention_floats(shape.max_group, shape.max_key_dim, shape.max_value_dim) * sizeof(float);
  for (const auto& family : kernels.attention) {
    for (const Attend& kernel : family) {
      const std::size_t queries = std::max<std::size_t>(kernel.queries, shape.max_group);
      bytes = std::max(bytes, attend_scratch(queries, shape.max_key_dim, shape.max_value_dim).bytes);
    }
  }
  std::size_t of_kernels = 0;
  for (const auto& family : kernels.linear) {
    for (const LinearPair& pair : family)
      of_kernels = std::max({of_kernels, pair.few.scratch_bytes, pair.many.scratch_bytes});
  }
  bytes = std::max(bytes, of_kernels);
  if (shape.head_inputs != 0) bytes = std::max(bytes, head_rows_bytes(shape.head_inputs, rules.numerics) + of_kernels);
  // A task also needs room for one row as floats, before it is prepared.
  return aligned(std::max<std::size_t>(bytes, widest_input(shape) * sizeof(float)));
}

std::uint64_t prepared_bytes(const backend::WorkspaceShape& shape, const WorkspaceRules& rules) noexcept {
  const std::uint64_t columns = widest_input(shape);
  std::uint64_t bytes = 0;
  for (std::size_t form = 0; form < kInputForms; ++form) {
    if (static_cast<InputForm>(form) == InputForm::f32) continue;  // kernels read f32 activations where they are
    bytes = std::max<std::uint64_t>(bytes, row_layout(static_cast<InputForm>(form), columns).bytes);
  }
  if (rules.numerics == Numerics::reference) return shape.rows * columns * sizeof(float);  // only rows that the model rounds are prepared
  // Rounded up to whole groups.
  return (shape.rows + most_tile_rows(rules.kernels) - 1) * bytes;
}

// Returns the bytes of the prepared rows of all experts. An expert's rows are in groups of the size of a tile. Each expert's last group
// has the memory of a full group, so up to most_tile_rows() - 1 rows are added for each expert.
std::uint64_t slot_row_bytes(const backend::WorkspaceShape& shape, const Kernels& kernels) noexcept {
  const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
  const std::uint64_t rows = slots + std::min<std::uint64_t>(slots, shape.n_experts) * (most_tile_rows(kernels) - 1);
  std::uint64_t bytes = 0;
  for (std::size_t form = 0; form < kInputForms; ++form) {
    for (const std::uint64_t columns : {shape.expert_inputs, shape.expert_dim}) {
      bytes = std::max<std::uint64_t>(bytes, row_layout(static_cast<InputForm>(form), columns).bytes);
    }
  }
  return rows * bytes;
}

}  // namespace

Workspace Workspace::lay_out(const backend::WorkspaceShape& shape, const WorkspaceRules& rules,
                             std::byte* base) noexcept {
  Workspace space;
  const auto take = [&]<class T>(T*& to, std::uint64_t count) {
    if (base != nullptr) to = reinterpret_cast<T*>(base + space.bytes);
    space.bytes += aligned(count * sizeof(T));
  };
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool is_logits = i == static_cast<std::size_t>(backend::Act::logits);
    take(space.acts[i], (is_logits ? shape.output_rows : shape.rows) * shape.columns[i]);
  }
  space.rope_floats = std::size_t{shape.rows} * 2 * shape.rope_dims;
  take(space.rope, space.rope_floats);
  take(space.prepared, prepared_bytes(shape, rules));
  take(space.states, std::uint64_t{shape.rows} * shape.max_heads * 2);
  take(space.partials, split_floats(rules.slots, shape.max_group, shape.max_value_dim));
  take(space.votes, Voters::floats(shape));
  if (const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts; slots != 0) {
    take(space.gate, slots * std::max(shape.expert_inputs, shape.expert_dim));
    take(space.up, slots * shape.expert_dim);
    take(space.slot_rows, slot_row_bytes(shape, rules.kernels));
    take(space.slot_lists, 5 * slots);
    take(space.places, 2 * shape.n_experts);
  }
  space.scratch_bytes = scratch_bytes_of(shape, rules);
  take(space.scratch, rules.slots * space.scratch_bytes);
  return space;
}

}  // namespace tessera::cpu
