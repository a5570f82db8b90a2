// Reads an adapter in one file: GGUF.
#include <algorithm>

#include <tessera/extend/formats/rows.hpp>

#include "adapters/adapter_base.hpp"
#include "adapters/adapter_builder.hpp"
#include "adapters/readers.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/adapter_contents.hpp"
#include "model/load/roles.hpp"
#include "os/file.hpp"

namespace tessera::detail::adapters {

namespace {

constexpr std::string_view kEndOfA = ".lora_a", kEndOfB = ".lora_b";

struct HalfPair {
  std::string_view name;  // name of the model's tensor
  const TensorInfo* a = nullptr;
  const TensorInfo* b = nullptr;
};

Error refused_half(ErrorCode code, const std::string& place, std::string_view tensor, std::string_view why) {
  return error_at(code, place, "tensor {}: {}", printable(tensor, 160), why);
}

Result<std::vector<HalfPair>> pairs_of(const AdapterContents& contents, const std::string& place) {
  std::vector<HalfPair> pairs;
  for (const TensorInfo& tensor : contents.tensors()) {
    std::string_view name = tensor.name;
    const bool is_a = name.ends_with(kEndOfA);
    if (!is_a && !name.ends_with(kEndOfB)) {
      return refused_half(ErrorCode::unsupported, place, name,
                          name.find("norm") != std::string_view::npos ? "a norm that an adapter replaces is not implemented"
                                                                      : "expected names that end in .lora_a and .lora_b");
    }
    name.remove_suffix(kEndOfA.size());
    pairs.push_back(is_a ? HalfPair{name, &tensor, nullptr} : HalfPair{name, nullptr, &tensor});
  }
  std::ranges::sort(pairs, {}, &HalfPair::name);
  std::vector<HalfPair> joined;
  for (const HalfPair& half : pairs) {
    if (joined.empty() || joined.back().name != half.name) {
      joined.push_back(half);
      continue;
    }
    HalfPair& first = joined.back();
    if ((half.a != nullptr && first.a != nullptr) || (half.b != nullptr && first.b != nullptr)) {
      return refused_half(ErrorCode::corrupt_file, place, half.name, "it occurs twice");
    }
    if (half.a != nullptr) {
      first.a = half.a;
    }
    else {
      first.b = half.b;
    }
  }
  for (const HalfPair& pair : joined) {
    if (pair.a != nullptr && pair.b != nullptr) continue;
    return refused_half(ErrorCode::corrupt_file, place, (pair.a != nullptr ? pair.a : pair.b)->name,
                        fmt::format("there is no {} beside it: the file is damaged", pair.a != nullptr ? kEndOfB : kEndOfA));
  }
  return joined;
}

HalfShape shape_of_half(const TensorInfo& tensor) noexcept { return {.columns = tensor.dims[0], .rows = tensor.dims[1], .count = tensor.dims[2]}; }

constexpr bool is_plain(DType dtype) noexcept { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// Reads one half of a change (its A or B). If its format is `dtype`, its bytes stay as they are. If not, its numbers are converted to F32.
Result<std::vector<std::byte>> read_half(const AdapterContents& contents, const TensorInfo& tensor, DType dtype) {
  std::vector<std::byte> bytes(tensor.bytes);
  TESSERA_TRY_STATUS(contents.read(tensor, bytes));
  if (tensor.dtype == dtype) return bytes;
  std::vector<std::byte> values(tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * sizeof(float));
  TESSERA_TRY_STATUS(formats::decode_row(tensor.dtype, bytes, {reinterpret_cast<float*>(values.data()), values.size() / sizeof(float)}));
  return values;
}

class PairReader {
 public:
  PairReader(const AdapterContents& contents, AdapterBuilder& builder) noexcept : contents_(contents), builder_(builder) {}

  [[nodiscard]] Status add(const HalfPair& pair) {
    TESSERA_TRY(const std::ptrdiff_t index, tensor_of(pair));
    // In a tied model the table of embeddings is also the output matrix.
    const bool is_embedding = pair.name == row_of(Role::token_embd).name;
    if (is_embedding && !contents_.invocation.empty()) {
      return refused_half(ErrorCode::unsupported, builder_.file(), pair.a->name,
                          "the table of embeddings in an adapter with invocation tokens is not implemented");
    }
    for (const TensorInfo* half : {pair.a, pair.b}) {
      if (!formats::block_of(half->dtype)) {
        return refused_half(ErrorCode::unsupported, builder_.file(), half->name, "tessera does not read its format");
      }
      if (half->dims[3] != 1) return refused_half(ErrorCode::corrupt_file, builder_.file(), half->name, "it has 4 dimensions");
    }
    const auto tensor = static_cast<std::uint32_t>(index);
    const HalfShape a = shape_of_half(*pair.a), b = shape_of_half(*pair.b);
    TESSERA_TRY(const std::uint32_t rank, builder_.check_shapes(tensor, is_embedding, a, b, pair.name));
    AdapterTensor made{.tensor = tensor, .rank = rank, .is_embedding = is_embedding};
    made.dtype = pair.a->dtype == pair.b->dtype && is_plain(pair.a->dtype) ? pair.a->dtype : DType::f32;
    made.a_count = a.count;
    made.b_count = b.count;
    made.scale = contents_.alpha == 0.0 ? 1.0f : static_cast<float>(contents_.alpha / rank);
    TESSERA_TRY_STATUS(builder_.take((a.columns * a.rows * a.count + b.columns * b.rows * b.count) * bytes_of_number(made.dtype), pair.name));
    TESSERA_TRY(made.a, read_half(contents_, *pair.a, made.dtype));
    TESSERA_TRY(made.b, read_half(contents_, *pair.b, made.dtype));
    return builder_.add(std::move(made), pair.name);
  }

 private:
  [[nodiscard]] Result<std::ptrdiff_t> tensor_of(const HalfPair& pair) const {
    std::ptrdiff_t index = find_adapted(builder_.base(), pair.name);
    if (index < 0 && pair.name == row_of(Role::output).name) index = find_adapted(builder_.base(), row_of(Role::token_embd).name);
    if (index >= 0) return index;
    return refused_half(ErrorCode::unsupported, builder_.file(), pair.a->name,
                        fmt::format("the model ({}) has no matrix {}: the adapter belongs to another model, or changes what tessera cannot adapt",
                                    printable(builder_.base().architecture), printable(pair.name)));
  }

  const AdapterContents& contents_;
  AdapterBuilder& builder_;
};

}  // namespace

Result<AdapterFile> read_single_file(const std::filesystem::path& file, const AdapterBase& base, const std::stop_token& stop) {
  TESSERA_TRY(const auto contents, open_adapter_file(file, most_adapter_tensors(base), stop));
  const std::string place = os::text_of(file);
  if (contents->architecture != base.architecture) {
    return error_at(ErrorCode::unsupported, place, "general.architecture is \"{}\", and the model's is \"{}\": the adapter belongs to another model",
                    printable(contents->architecture), printable(base.architecture));
  }
  TESSERA_TRY(const auto pairs, pairs_of(*contents, place));
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : contents->tensors()) {
    const bool is_quantised = !is_plain(tensor.dtype);
    bytes += is_quantised ? tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * sizeof(float) : tensor.bytes;
  }
  AdapterBuilder builder(base, place, most_bytes_for(bytes));
  PairReader reader(*contents, builder);
  for (const HalfPair& pair : pairs) {
    if (stop.stop_requested()) return error_at(ErrorCode::cancelled, place, "reading the adapter was cancelled");
    TESSERA_TRY_STATUS(reader.add(pair));
  }
  return builder.finish(contents->name, contents->base, contents->invocation);
}

}  // namespace tessera::detail::adapters
