#include "model/load/weight_rows.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "formats/formats.hpp"

namespace tessera::detail {

std::uint64_t file_row_bytes(const backend::MatrixShape& shape) {
  const auto block = formats::block_of(shape.dtype);  // has a value: bind_tensors() has refused all other types
  return block ? shape.inputs / block->values * block->bytes : 0;
}

std::uint64_t vector_values(const Binding& binding) noexcept { return binding.shape.rows() * binding.shape.inputs; }

namespace {

// Returns this rank's part of each vector of the binding, one after another. `whole` begins with the whole vectors, one after another.
std::vector<float> own_part(const Binding& binding, std::span<const float> whole) {
  const std::size_t n = binding.shape.inputs, stride = binding.whole_shape().inputs;
  std::vector<float> part;
  part.reserve(vector_values(binding));
  for (std::size_t i = 0; i < binding.shape.rows(); ++i) {
    const std::span<const float> values = whole.subspan(i * stride + binding.own.first, n);
    part.insert(part.end(), values.begin(), values.end());
  }
  return part;
}

}  // namespace

Result<std::vector<float>> read_vector(const ModelSource& source, const TensorInfo& tensor, const Binding& binding,
                                       Hasher128& hasher) {
  std::vector<std::byte> bytes(tensor.bytes);
  TESSERA_TRY_STATUS(source.read(tensor, 0, bytes));
  hasher.add(bytes);
  std::vector<float> values(tensor.dims[0] * tensor.dims[1]);
  formats::visit(tensor.dtype, [&]<class F>(std::type_identity<F>) {
    for (std::size_t i = 0; i < values.size() / F::block_values; ++i) {
      F::decode(bytes.data() + i * F::block_bytes, values.data() + i * F::block_values);
    }
  });
  if (row_of(binding.role).by_element) {
    std::vector<float> turned(values.size());
    const std::size_t n = binding.whole_shape().inputs, count = binding.shape.count;
    for (std::size_t i = 0; i < values.size(); ++i) turned[i % n * count + i / n] = values[i];
    return own_part(binding, turned);
  }
  return own_part(binding, std::span(values).subspan(binding.first_row));
}

Result<std::vector<float>> read_factors(const ModelSource& source, const Binding& binding, Hasher128& hasher) {
  const TensorInfo& tensor = source.tensors()[binding.companions[Companion::factors]];
  std::vector<float> values(tensor.dims[0]);
  TESSERA_TRY_STATUS(source.read(tensor, 0, std::as_writable_bytes(std::span(values))));
  hasher.add(std::as_bytes(std::span(values)));
  values.resize(binding.shape.count, values.front());
  return values;
}

Status read_rows(const ModelSource& source, const TensorInfo& tensor, const Binding& binding, std::uint64_t first, std::span<std::byte> out) {
  const std::uint64_t row_bytes = file_row_bytes(binding.shape);
  if (binding.row_inputs != 0) {
    const std::uint64_t before = binding.first_column * row_bytes / binding.shape.inputs;
    const std::uint64_t whole = binding.row_inputs * row_bytes / binding.shape.inputs;
    for (; !out.empty(); ++first, out = out.subspan(row_bytes)) {
      TESSERA_TRY_STATUS(source.read(tensor, first * whole + before, out.first(row_bytes)));
    }
    return {};
  }
  if (binding.stretch_rows == 0) return source.read(tensor, (binding.first_row + first) * row_bytes, out);
  while (!out.empty()) {
    const std::uint64_t in_stretch = first % binding.stretch_rows;
    const std::uint64_t row = binding.first_row + first / binding.stretch_rows * binding.stretch_stride + in_stretch;
    const std::uint64_t rows = std::min<std::uint64_t>(binding.stretch_rows - in_stretch, out.size() / row_bytes);
    TESSERA_TRY_STATUS(source.read(tensor, row * row_bytes, out.first(rows * row_bytes)));
    out = out.subspan(rows * row_bytes);
    first += rows;
  }
  return {};
}

}  // namespace tessera::detail
