#include "engine/adapters/adapter_places.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "core/float16.hpp"
#include "formats/formats.hpp"
#include "model/load/weight_rows.hpp"
#include "ranks/role_splits.hpp"

namespace tessera::detail {

static_assert(kMaxAdapterRank <= backend::kMaxLowRank, "every adapter that is read can be computed");

namespace {

// Returns whether an adapter can change this weight. It can if the weight is a matrix of the model whose products a step computes, or the
// table in which a step looks up the tokens' embeddings. It cannot change vectors, other tables (positions, segments, embeddings for each
// layer) or draft heads.
bool has_place(const Binding& binding, const ModelSpec& spec) {
  if (!binding.is_matrix || (row_of(binding.role).owner != Owner::model && binding.layer >= spec.n_layers())) return false;
  switch (binding.role) {
    case Role::position_embd:
    case Role::segment_embd:
    case Role::per_layer_token_embd:
      return false;
    default:
      return true;
  }
}

// Converts a row of this rank's part of a weight (`i`, counted over all matrices of the part) to a row of the whole weight.
std::uint64_t whole_row(const Binding& binding, std::uint64_t i) noexcept {
  if (binding.own.whole == 0) return i;
  return i / binding.shape.outputs * binding.own.whole + binding.own.first + i % binding.shape.outputs;
}

// Converts a row of this rank's part of a weight (`of_part`, counted over all matrices of the part) to a row of the tensor.
std::uint64_t tensor_row(const Binding& binding, std::uint64_t of_part) noexcept {
  const std::uint64_t i = whole_row(binding, of_part);
  if (binding.stretch_rows == 0) return binding.first_row + i;
  return binding.first_row + i / binding.stretch_rows * binding.stretch_stride + i % binding.stretch_rows;
}

std::size_t number_bytes(DType dtype) noexcept { return dtype == DType::f32 ? 4 : 2; }

backend::LowRankShape shape_of(const AdapterTensor& from, const Binding& binding) noexcept {
  const backend::MatrixShape& weight = binding.shape;
  const auto shared = [&](std::uint64_t count) { return count == 1 ? 1 : weight.count; };
  return {.outputs = from.is_embedding ? weight.inputs : weight.outputs,
          .inputs = from.is_embedding ? weight.outputs : weight.inputs,
          .rank = from.rank,
          .dtype = from.dtype,
          .count = weight.count,
          .a_count = shared(from.a_count),
          .b_count = shared(from.b_count),
          .scale = from.scale,
          .has_lengths = !from.lengths.empty(),
          .is_table = from.is_embedding};
}

std::vector<float> numbers_of(DType dtype, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / number_bytes(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else {
      std::uint16_t bits;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      values[i] = dtype == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
  }
  return values;
}

// Returns the numbers by which a DoRA adapter scales each row of W + scale * B A to a given length. For each row of W these are the given
// length and three dot products: of the row of W with itself, of the row of W with the same row of B A, and of the row of B A with
// itself. From the dot products the norm of the row of W + scale * B A can be computed for any scale. `a` and `b` are the bytes of A and
// B for this weight.
Result<std::vector<backend::LowRankValues::Length>> lengths_of(const AdapterTensor& from, const Binding& binding, const ModelSource& source,
                                                               std::span<const std::byte> a, std::span<const std::byte> b) {
  const backend::LowRankShape shape = shape_of(from, binding);
  const TensorInfo& tensor = source.tensors()[binding.tensor];
  const std::vector<float> of_a = numbers_of(from.dtype, a), of_b = numbers_of(from.dtype, b);
  std::vector<backend::LowRankValues::Length> lengths(shape.count * shape.outputs);
  std::vector<std::byte> row(file_row_bytes(binding.shape));
  std::vector<float> base(shape.inputs);
  std::vector<double> change(shape.inputs);
  for (std::uint64_t i = 0; i < lengths.size(); ++i) {
    TESSERA_TRY_STATUS(read_rows(source, tensor, binding, whole_row(binding, i), row));
    formats::visit(tensor.dtype, [&]<class F>(std::type_identity<F>) {
      for (std::size_t block = 0; block < base.size() / F::block_values; ++block) {
        F::decode(row.data() + block * F::block_bytes, base.data() + block * F::block_values);
      }
    });
    const std::uint64_t matrix = i / shape.outputs, output = i % shape.outputs;
    const float* rows = of_a.data() + (shape.a_count == 1 ? 0 : matrix) * shape.rank * shape.inputs;
    const float* columns = of_b.data() + ((shape.b_count == 1 ? 0 : matrix) * shape.outputs + output) * shape.rank;
    std::ranges::fill(change, 0.0);
    for (std::uint32_t r = 0; r < shape.rank; ++r) {
      for (std::size_t k = 0; k < change.size(); ++k) change[k] += static_cast<double>(columns[r]) * static_cast<double>(rows[r * shape.inputs + k]);
    }
    backend::LowRankValues::Length& length = lengths[i];
    length.wanted = static_cast<double>(from.lengths[tensor_row(binding, i)]);
    for (std::size_t k = 0; k < change.size(); ++k) {
      const double weight = static_cast<double>(base[k]);
      length.base += weight * weight;
      length.mixed += weight * change[k];
      length.change += change[k] * change[k];
    }
  }
  return lengths;
}

}  // namespace

AdapterPlaces::AdapterPlaces(const Model& model, const ModelSource& source, std::span<const Binding> bindings) {
  std::vector<const Binding*> placed;
  for (const Binding& binding : bindings) {
    if (has_place(binding, model.spec)) placed.push_back(&binding);
  }
  // If the ranks gather the product of a matrix (each rank gets the columns that the others have computed), each rank adds the adapter's
  // change to the gathered product. So each rank needs the whole change, and the binding is made whole here. If the product is not
  // gathered, a rank adds only its own part of the change.
  const auto as_changed = [](const Binding& binding) {
    Binding changed = binding;
    if (!is_gathered_behind(binding.role)) return changed;
    changed.shape = binding.whole_shape();
    changed.own = {.here = binding.own.here};
    return changed;
  };
  const auto name = [&](const Binding* binding) { return source.tensors()[binding->tensor].name; };
  std::ranges::stable_sort(placed, {}, name);
  for (const Binding* binding : placed) {
    const TensorInfo& tensor = source.tensors()[binding->tensor];
    if (tensors_.empty() || tensors_.back().name != tensor.name) {
      tensors_.push_back({.name = std::string(tensor.name), .inputs = tensor.dims[0], .outputs = tensor.dims[1], .count = tensor.dims[2]});
      first_.push_back(weights_.size());
    }
    const bool once = row_of(binding->role).owner == Owner::model;
    weights_.push_back({.binding = as_changed(*binding), .matrix = (once ? model.weights : model.layer_weights[binding->layer]).matrix(binding->role)});
  }
  first_.push_back(weights_.size());
}

std::uint64_t change_bytes(const AdapterTensor& from, const AdapterPlaces::Weight& weight, const backend::Backend& backend) noexcept {
  return backend.low_rank_bytes(shape_of(from, weight.binding));
}

Result<std::shared_ptr<const backend::LowRank>> make_change(const AdapterTensor& from, const AdaptedTensor& tensor,
                                                            const AdapterPlaces::Weight& weight, const backend::Backend& backend,
                                                            const ModelSource* source) {
  const Binding& binding = weight.binding;
  const backend::LowRankShape shape = shape_of(from, binding);
  // Only the host can change the products of experts (backend::ExpertProducts), but a device computes them without the host.
  const bool is_of_experts = binding.role == Role::experts_gate || binding.role == Role::experts_up || binding.role == Role::experts_down;
  if (backend.on_device() && is_of_experts) {
    return make_error(ErrorCode::unsupported, "{}: backend {} does not change the products of experts; use the cpu backend", tensor.name,
                      backend.name());
  }
  if (shape.is_table) return backend.hold_low_rank(shape, {.a = from.a, .b = from.b, .lengths = {}});
  const std::size_t number = number_bytes(from.dtype), rank_bytes = shape.rank * number;
  std::vector<std::byte> a(shape.a_count * shape.rank * shape.inputs * number), b(shape.b_count * shape.outputs * rank_bytes);
  for (std::uint64_t i = 0; i < shape.a_count; ++i) {
    const std::uint64_t matrix = from.a_count == 1 ? 0 : tensor_row(binding, i * shape.outputs) / tensor.outputs;
    for (std::uint64_t r = 0; r < shape.rank; ++r) {
      std::memcpy(a.data() + (i * shape.rank + r) * shape.inputs * number,
                  from.a.data() + ((matrix * shape.rank + r) * tensor.inputs + binding.first_column) * number, shape.inputs * number);
    }
  }
  for (std::uint64_t i = 0; i < shape.b_count * shape.outputs; ++i) {
    const std::uint64_t row = tensor_row(binding, i);
    std::memcpy(b.data() + i * rank_bytes, from.b.data() + (from.b_count == 1 ? row % tensor.outputs : row) * rank_bytes, rank_bytes);
  }
  std::vector<backend::LowRankValues::Length> lengths;
  if (shape.has_lengths) {
    if (binding.companions.has(Companion::factors)) {
      return make_error(ErrorCode::unsupported, "{}: lengths (DoRA) of a matrix whose products are multiplied by factors", tensor.name);
    }
    TESSERA_TRY(lengths, lengths_of(from, binding, *source, a, b));
  }
  return backend.hold_low_rank(shape, {.a = a, .b = b, .lengths = lengths});
}

}  // namespace tessera::detail
