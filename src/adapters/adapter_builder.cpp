#include "adapters/adapter_builder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <tessera/extend/formats/rows.hpp>

#include "core/error.hpp"
#include "core/hasher.hpp"
#include "core/printable.hpp"

namespace tessera::detail::adapters {

namespace {

// Returns whether any of the numbers has all bits of its exponent set, as NaN and infinity have.
template <class Bits, Bits kExponent>
bool has_special(std::span<const std::byte> bytes) noexcept {
  bool found = false;
  for (std::size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits bits = 0;
    std::memcpy(&bits, bytes.data() + i, sizeof bits);
    found |= (bits & kExponent) == kExponent;
  }
  return found;
}

bool is_finite(DType dtype, std::span<const std::byte> bytes) noexcept {
  if (dtype == DType::f32) return !has_special<std::uint32_t, 0x7f800000U>(bytes);
  return dtype == DType::f16 ? !has_special<std::uint16_t, 0x7c00U>(bytes) : !has_special<std::uint16_t, 0x7f80U>(bytes);
}

template <class T>
void add_number(Hasher128& hasher, T value) noexcept {
  hasher.add(std::as_bytes(std::span(&value, 1)));
}

// Returns the hash of everything in an adapter that changes results (AdapterFile::content). A tensor is hashed by its name, not by its
// index, because two engines of one model may list different tensors.
Hash128 content_of(const AdapterFile& file, const AdapterBase& base) noexcept {
  Hasher128 hasher;
  add_number(hasher, static_cast<std::uint64_t>(file.invocation.size()));
  hasher.add(std::as_bytes(std::span(file.invocation)));
  for (const AdapterTensor& tensor : file.tensors) {
    const std::string& name = base.tensors[tensor.tensor].name;
    add_number(hasher, static_cast<std::uint64_t>(name.size()));
    hasher.add(std::as_bytes(std::span(name)));
    add_number(hasher, static_cast<std::uint64_t>(tensor.rank));
    add_number(hasher, static_cast<std::uint64_t>(tensor.dtype));
    add_number(hasher, static_cast<std::uint64_t>(tensor.is_embedding ? 1 : 0));
    add_number(hasher, tensor.a_count);
    add_number(hasher, tensor.b_count);
    add_number(hasher, static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(tensor.scale)));
    add_number(hasher, static_cast<std::uint64_t>(tensor.lengths.size()));
    hasher.add(tensor.a);
    hasher.add(tensor.b);
    hasher.add(std::as_bytes(std::span(tensor.lengths)));
  }
  return hasher.digest();
}

}  // namespace

std::vector<float> widened(DType dtype, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / bytes_of_number(dtype));
  (void)formats::decode_row(dtype, bytes, values);  // cannot fail: the numbers are not in blocks, and the sizes match
  return values;
}

Status check_invocation(const std::vector<Token>& invocation, const AdapterBase& base, std::string_view place) {
  for (const Token token : invocation) {
    if (token >= 0 && (base.vocab_size == 0 || static_cast<std::uint64_t>(token) < base.vocab_size)) continue;
    return error_at(ErrorCode::corrupt_file, place,
                    "alora_invocation_tokens: token {} is none of the model's {}: the adapter belongs to another model", token, base.vocab_size);
  }
  return {};
}

Status AdapterBuilder::take(std::uint64_t bytes, std::string_view called) {
  if (bytes > left_) {
    return error_at(ErrorCode::corrupt_file, file_,
                    "tensor {}: the adapter's matrices would take more than {} bytes, which is more than a file of this size has", printable(called),
                    most_);
  }
  left_ -= bytes;
  return {};
}

Result<std::uint32_t> AdapterBuilder::check_rank(std::uint64_t of_a, std::uint64_t of_b, std::string_view called) const {
  if (of_a == 0 || of_a > kMaxAdapterRank) {
    return error_at(ErrorCode::corrupt_file, file_, "{}: the rank is {}; expected 1 to {}", printable(called, 160), of_a, kMaxAdapterRank);
  }
  if (of_a != of_b) {
    return error_at(ErrorCode::corrupt_file, file_, "{}: lora_A has rank {}, and lora_B {}: the file is damaged", printable(called, 160), of_a, of_b);
  }
  return static_cast<std::uint32_t>(of_a);
}

Result<std::uint32_t> AdapterBuilder::check_shapes(std::uint32_t tensor, bool is_embedding, const HalfShape& a, const HalfShape& b,
                                                   std::string_view called) const {
  const AdaptedTensor& own = base_.tensors[tensor];
  const auto wrong_shape = [&](std::string_view half, std::string_view what, std::uint64_t has, std::uint64_t expected) {
    const std::string model_name = called == own.name ? "" : fmt::format(" ({})", own.name);  // a GGUF adapter names tensors as the model does
    return error_at(ErrorCode::corrupt_file, file_, "{}{}: {} has {} {}, the model's matrix has {}: the adapter belongs to another model",
                    printable(called), model_name, half, has, what, expected);
  };
  TESSERA_TRY(const std::uint32_t rank, check_rank(is_embedding ? a.columns : a.rows, b.columns, called));
  if (is_embedding) {
    if (a.rows != own.outputs) return wrong_shape("lora_embedding_A", "tokens", a.rows, own.outputs);
    if (b.rows != own.inputs) return wrong_shape("lora_embedding_B", "rows", b.rows, own.inputs);
    if (a.count != 1 || b.count != 1) return wrong_shape("lora_embedding_A", "matrices", a.count, 1);
    return rank;
  }
  if (a.columns != own.inputs) return wrong_shape("lora_A", "columns", a.columns, own.inputs);
  if (b.rows != own.outputs) return wrong_shape("lora_B", "rows", b.rows, own.outputs);
  if (a.count != 1 && a.count != own.count) return wrong_shape("lora_A", "matrices", a.count, own.count);
  if (b.count != 1 && b.count != own.count) return wrong_shape("lora_B", "matrices", b.count, own.count);
  return rank;
}

Status AdapterBuilder::add(AdapterTensor tensor, std::string_view called) {
  const auto lengths = std::as_bytes(std::span(tensor.lengths));
  if (!is_finite(tensor.dtype, tensor.a) || !is_finite(tensor.dtype, tensor.b) || !is_finite(DType::f32, lengths) || !std::isfinite(tensor.scale)) {
    return error_at(ErrorCode::corrupt_file, file_, "{}: it has NaN or infinity: the file is damaged, or its training failed", printable(called));
  }
  made_.tensors.push_back(std::move(tensor));
  return {};
}

Result<AdapterFile> AdapterBuilder::finish(std::string name, std::string base_name, std::vector<Token> invocation) {
  TESSERA_TRY_STATUS(check_invocation(invocation, base_, file_));
  if (made_.tensors.empty()) return error_at(ErrorCode::corrupt_file, file_, "the adapter has no tensors");
  const auto place_of_tensor = [](const AdapterTensor& tensor) { return std::pair(tensor.tensor, tensor.is_embedding); };
  std::ranges::sort(made_.tensors, {}, place_of_tensor);
  const auto twice = std::ranges::adjacent_find(made_.tensors, {}, place_of_tensor);
  if (twice != made_.tensors.end()) {
    return error_at(ErrorCode::corrupt_file, file_, "the file changes {} twice", base_.tensors[twice->tensor].name);
  }
  made_.name = std::move(name);
  made_.base = std::move(base_name);
  made_.invocation = std::move(invocation);
  made_.content = content_of(made_, base_);
  return std::move(made_);
}

}  // namespace tessera::detail::adapters
