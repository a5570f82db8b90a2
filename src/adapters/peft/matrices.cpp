#include "adapters/peft/matrices.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::detail::adapters {

namespace {

std::optional<DType> number_type(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::f32:
      return DType::f32;
    case SafetensorsType::f16:
      return DType::f16;
    case SafetensorsType::bf16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

struct ReadTensor {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
};

Result<ReadTensor> read_tensor(const SafetensorsFolder& file, const SafetensorsTensor& tensor, const AdapterBuilder& builder) {
  const auto dtype = number_type(tensor.type);
  if (!dtype) {
    return error_at(ErrorCode::unsupported, builder.file(), "tensor {}: its numbers are {}; tessera reads adapters in F32, F16 and BF16",
                    printable(tensor.name, 160), to_string(tensor.type));
  }
  ReadTensor read{.dtype = *dtype, .bytes = std::vector<std::byte>(tensor.bytes)};
  TESSERA_TRY_STATUS(file.read(tensor, 0, read.bytes));
  return read;
}

std::vector<std::byte> as_f32(DType dtype, std::span<const std::byte> bytes) {
  const std::vector<float> values = widened(dtype, bytes);
  const auto raw = std::as_bytes(std::span(values));
  return {raw.begin(), raw.end()};
}

// Returns a parameter's matrix B with each expert's numbers contiguous: reorders [outputs, rank, experts], as PEFT stores them, to
// [experts, outputs, rank]. `size`: bytes of a number.
std::vector<std::byte> dealt_to_experts(std::span<const std::byte> from, std::uint64_t outputs, std::uint64_t rank, std::uint64_t experts,
                                        std::uint64_t size) {
  std::vector<std::byte> out(from.size());
  for (std::uint64_t o = 0; o < outputs; ++o) {
    for (std::uint64_t r = 0; r < rank; ++r) {
      for (std::uint64_t e = 0; e < experts; ++e) {
        std::memcpy(&out[((e * outputs + o) * rank + r) * size], &from[((o * rank + r) * experts + e) * size], size);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<std::byte> transposed_matrix(std::span<const std::byte> from, std::uint64_t rows, std::uint64_t columns, std::uint64_t size) {
  std::vector<std::byte> out(from.size());
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c) std::memcpy(&out[(c * rows + r) * size], &from[(r * columns + c) * size], size);
  }
  return out;
}

Result<PeftMatrices> read_matrices(const SafetensorsFolder& file, const PeftModule& module, std::uint64_t experts, const AdapterBuilder& builder) {
  TESSERA_TRY(ReadTensor a, read_tensor(file, *module.a, builder));
  TESSERA_TRY(ReadTensor b, read_tensor(file, *module.b, builder));
  if (a.dtype != b.dtype) {
    a = {DType::f32, as_f32(a.dtype, a.bytes)};
    b = {DType::f32, as_f32(b.dtype, b.bytes)};
  }
  PeftMatrices made{
      .inputs = module.a->dims[1], .outputs = module.b->dims[0], .rank = module.a->dims[0] / experts, .count = experts, .dtype = a.dtype};
  made.a = std::move(a.bytes);
  made.b = experts == 1 ? std::move(b.bytes) : dealt_to_experts(b.bytes, made.outputs, made.rank, experts, bytes_of_number(made.dtype));
  if (module.lengths == nullptr) return made;
  TESSERA_TRY(const ReadTensor lengths, read_tensor(file, *module.lengths, builder));
  made.lengths = widened(lengths.dtype, lengths.bytes);
  if (made.lengths.size() != made.outputs) {
    return error_at(ErrorCode::corrupt_file, builder.file(), "tensor {}: it has {} numbers, and lora_B {} rows: the file is damaged",
                    printable(module.lengths->name, 160), made.lengths.size(), made.outputs);
  }
  return made;
}

void ExpertStack::add(std::uint32_t expert, PeftMatrices matrices, float scale) {
  if (!has_some_) {
    dtype_ = matrices.dtype;
    scale_ = scale;
    inputs_ = matrices.inputs;
    outputs_ = matrices.outputs;
    has_some_ = true;
  }
  has_one_scale_ = has_one_scale_ && scale == scale_;
  if (matrices.dtype != dtype_ || !has_one_scale_) dtype_ = DType::f32;
  rank_ = std::max(rank_, matrices.rank);
  experts_[expert] = {std::move(matrices), scale};
}

std::uint64_t ExpertStack::bytes() const noexcept { return experts_.size() * rank_ * (inputs_ + outputs_) * bytes_of_number(dtype_); }

PeftMatrices ExpertStack::stacked() const {
  const std::uint64_t size = bytes_of_number(dtype_);
  PeftMatrices all{.inputs = inputs_, .outputs = outputs_, .rank = rank_, .count = experts_.size(), .dtype = dtype_};
  all.a.resize(all.count * rank_ * inputs_ * size);  // zeros
  all.b.resize(all.count * outputs_ * rank_ * size);
  for (std::uint64_t e = 0; e < all.count; ++e) {
    const auto& [own, scale] = experts_[e];
    if (own.rank == 0) continue;
    std::vector<std::byte> a = own.a, b = own.b;
    if (dtype_ == DType::f32 && (own.dtype != dtype_ || !has_one_scale_)) {
      a = as_f32(own.dtype, own.a);
      std::vector<float> values = widened(own.dtype, own.b);
      if (!has_one_scale_) {
        for (float& value : values) value *= scale;
      }
      const auto raw = std::as_bytes(std::span(values));
      b.assign(raw.begin(), raw.end());
    }
    std::memcpy(&all.a[e * rank_ * inputs_ * size], a.data(), a.size());
    for (std::uint64_t o = 0; o < outputs_; ++o) std::memcpy(&all.b[((e * outputs_ + o) * rank_) * size], &b[o * own.rank * size], own.rank * size);
  }
  return all;
}

}  // namespace tessera::detail::adapters
