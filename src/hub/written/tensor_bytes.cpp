// Computes the bytes of a tensor of the written folder from tensors of the model: undoes changes of the numbers (such as 1 + weight), and
// puts the numbers into the folder's order.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <tessera/extend/formats/rows.hpp>

#include "core/error.hpp"
#include "core/math.hpp"
#include "core/printable.hpp"
#include "hub/written/folder_tensors.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;         // values that are read together
constexpr std::uint64_t kMostNarrowed = std::uint64_t{1} << 24;  // limit for the values of a small tensor

Status stopped() { return error_at(ErrorCode::cancelled, {}, "writing the folder was cancelled"); }

float rounded_to(DType dtype, float value) noexcept {
  std::byte bytes[4];
  float back = value;
  if (dtype == DType::f32) return value;
  if (!formats::encode_row(dtype, std::span(&value, 1), std::span(bytes).first(2))) return value;
  if (!formats::decode_row(dtype, std::span(bytes).first(2), std::span(&back, 1))) return value;
  return back;
}

float changed_by(Numbers numbers, float x) noexcept {
  if (numbers == Numbers::plus_one) return x + 1.0f;
  if (numbers == Numbers::minus_exponential) return -static_cast<float>(math::exp(static_cast<double>(x)));
  return x;
}

// Returns a logarithm that becomes the same rate of decay in float32; one with few digits, if it exists.
float logarithm_of(float rate, DType main) noexcept {
  const auto near = static_cast<float>(std::log(-static_cast<double>(rate)));
  if (!(rate < 0.0f)) return near;
  const auto gives = [&](float x) { return changed_by(Numbers::minus_exponential, x) == rate; };
  const float narrow = rounded_to(main, near);
  if (gives(narrow)) return narrow;
  for (const float towards : {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()}) {
    float x = near;
    for (int i = 0; i < 64; ++i, x = std::nextafter(x, towards)) {
      if (gives(x)) return x;
    }
  }
  return near;
}

void change_back(Numbers numbers, DType main, std::span<float> values) noexcept {
  for (float& x : values) {
    if (numbers == Numbers::plus_one) x -= 1.0f;
    if (numbers == Numbers::minus_exponential) x = logarithm_of(x, main);
  }
}

bool keeps_numbers(const WrittenPart& part) noexcept { return part.recipe.numbers == Numbers::same || part.recipe.numbers == Numbers::widened; }

// Passes the values of a part, in the model's order and in the tensor's type, to act(bytes).
template <class Act>
Status each_piece(const ModelSource& model, const WrittenTensor& tensor, const WrittenPart& part, const std::stop_token& stop, const Act& act) {
  const DType from = part.tensor->dtype;
  const auto block = *formats::block_of(from);
  const std::uint64_t piece = kPiece / block.values * block.values;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (std::uint64_t at = 0; at < part.values; at += piece) {
    if (stop.stop_requested()) return stopped();
    const std::uint64_t count = std::min(piece, part.values - at);
    bytes.resize(count / block.values * block.bytes);
    TESSERA_TRY_STATUS(model.read(*part.tensor, (part.first + at) / block.values * block.bytes, bytes));
    if (from == tensor.dtype && keeps_numbers(part)) {
      TESSERA_TRY_STATUS(act(std::span<const std::byte>(bytes)));
      continue;
    }
    values.resize(count);
    TESSERA_TRY_STATUS(formats::decode_row(from, bytes, values));
    change_back(part.recipe.numbers, tensor.main, values);
    bytes.resize(count * number_bytes(tensor.dtype));
    TESSERA_TRY_STATUS(formats::encode_row(tensor.dtype, values, bytes));
    if (tensor.dtype == DType::f16) {
      for (std::uint64_t i = 0; i < count; ++i) {
        if (std::fabs(values[i]) < 65520.0f || !std::isfinite(values[i])) continue;
        return error_at(ErrorCode::unsupported, model.called(part.tensor->name), "it has the number {}, which F16 cannot hold: choose BF16 or F32", values[i]);
      }
    }
    TESSERA_TRY_STATUS(act(std::span<const std::byte>(bytes)));
  }
  return {};
}

// The place in the folder's tensor of each unit of the model's tensor. A unit is a row if the recipe copies rows, otherwise a number.
struct Places {
  std::uint64_t values_in_unit = 1;
  std::vector<std::uint32_t> of;
};
Result<Places> places_of(const WrittenPart& part) {
  Recipe recipe = part.recipe;
  recipe.dtype = DType::f32;  // F32 numbers have the size of an index
  recipe.numbers = Numbers::same;
  Places places;
  if (recipe.copies_rows()) places.values_in_unit = std::exchange(recipe.parts.front().columns, 1);
  const std::uint64_t units = recipe.parts.front().rows * recipe.parts.front().columns;
  if (units > std::numeric_limits<std::uint32_t>::max()) return make_error(ErrorCode::unsupported, "a tensor of {} numbers that are put into another order", units);
  std::vector<std::vector<std::byte>> parts(1);
  parts[0].resize(units * sizeof(std::uint32_t));
  for (std::uint64_t i = 0; i < units; ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    std::memcpy(parts[0].data() + i * sizeof index, &index, sizeof index);
  }
  const std::vector<std::byte> made = make_whole(recipe, std::move(parts));
  places.of.resize(made.size() / sizeof(std::uint32_t));
  std::memcpy(places.of.data(), made.data(), made.size());
  return places;
}

bool is_in_order(const WrittenTensor& tensor) noexcept {
  if (tensor.parts.size() != 1) return false;
  const Recipe& recipe = tensor.parts.front().recipe;
  return recipe.order.empty() && recipe.transposed_rows == 0 && recipe.transposed_last == 0 && recipe.column_order.empty();
}

// Returns the bytes of a whole tensor, for tensors whose numbers change places. Numbers of the folder's tensor that no part has are 0.
Result<std::vector<std::byte>> whole_tensor(const ModelSource& model, const WrittenTensor& tensor, const std::stop_token& stop) {
  std::vector<std::byte> whole(tensor.bytes());
  for (const WrittenPart& part : tensor.parts) {
    TESSERA_TRY(const Places places, places_of(part));
    const std::uint64_t unit = places.values_in_unit * number_bytes(tensor.dtype);
    std::vector<std::byte> values;
    values.reserve(part.values * number_bytes(tensor.dtype));
    TESSERA_TRY_STATUS(each_piece(model, tensor, part, stop, [&](std::span<const std::byte> piece) {
      values.insert(values.end(), piece.begin(), piece.end());
      return Status();
    }));
    if (values.size() != places.of.size() * unit) return make_error(ErrorCode::corrupt_file, "{}: {} bytes for {} places", tensor.name, values.size(), places.of.size());
    for (std::size_t i = 0; i < places.of.size(); ++i) std::memcpy(whole.data() + places.of[i] * unit, values.data() + i * unit, unit);
  }
  return whole;
}

// Returns whether the type `main` represents each number of the tensor exactly.
Result<bool> fits(const ModelSource& model, const WrittenTensor& tensor, const std::stop_token& stop) {
  bool is_exact = true;
  for (const WrittenPart& part : tensor.parts) {
    TESSERA_TRY_STATUS(each_piece(model, tensor, part, stop, [&](std::span<const std::byte> piece) {
      for (std::size_t at = 0; at < piece.size() && is_exact; at += sizeof(float)) {
        float value = 0.0f;
        std::memcpy(&value, piece.data() + at, sizeof value);
        const float back = rounded_to(tensor.main, value);
        is_exact = std::memcmp(&back, &value, sizeof value) == 0;
      }
      return Status();
    }));
  }
  return is_exact;
}

// Returns whether a tensor is a matrix that gets the type that the caller chose for all matrices. Routers and convolutions are not: they
// are small, and results depend on their precision strongly.
bool is_matrix(const WrittenTensor& tensor) noexcept {
  const std::string_view name = tensor.parts.front().tensor->name;
  return tensor.dims.n >= 2 && tensor.dims.dims[1] > 1 && !name.ends_with(".ffn_gate_inp.weight") && name.find("conv") == std::string_view::npos;
}

}  // namespace

Status choose_types(const ModelSource& model, DType main, bool all, const std::stop_token& stop, std::vector<WrittenTensor>& tensors) {
  for (WrittenTensor& tensor : tensors) {
    tensor.main = main;
    bool is_quantised = false, is_f32 = true;
    DType kept = tensor.parts.front().tensor->dtype;
    for (const WrittenPart& part : tensor.parts) {
      const auto block = formats::block_of(part.tensor->dtype);
      if (!block) return error_at(ErrorCode::unsupported, model.called(part.tensor->name), "its format is not one of tessera's");
      if (part.first % block->values != 0 || part.values % block->values != 0) return error_at(ErrorCode::unsupported, model.called(part.tensor->name), "its experts are not whole blocks");
      is_quantised = is_quantised || !has_single_numbers(part.tensor->dtype);
      is_f32 = is_f32 && part.tensor->dtype == DType::f32;
      if (part.tensor->dtype != kept) kept = DType::f32;
    }
    tensor.dtype = is_quantised ? main : kept;
    if (is_f32 && main != DType::f32 && tensor.values() <= kMostNarrowed) {
      TESSERA_TRY(const bool is_exact, fits(model, tensor, stop));
      if (is_exact) tensor.dtype = main;
    }
    const bool is_chosen = all && !is_quantised && tensor.dtype != main && is_matrix(tensor);
    if (is_chosen) tensor.dtype = main;
    tensor.is_rounded = (is_quantised || is_chosen) && main != DType::f32;
  }
  return {};
}

Status write_tensor(const ModelSource& model, const WrittenTensor& tensor, const std::stop_token& stop, const ByteSink& write) {
  if (is_in_order(tensor)) return each_piece(model, tensor, tensor.parts.front(), stop, write);
  TESSERA_TRY(const std::vector<std::byte> whole, whole_tensor(model, tensor, stop));
  return write(whole);
}

}  // namespace tessera::detail::hub
