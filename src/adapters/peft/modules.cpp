#include "adapters/peft/modules.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::detail::adapters {

namespace {

constexpr std::string_view kFront = "base_model.model.";
constexpr std::string_view kWrapper = ".base_layer";
constexpr std::uint32_t kMostWrappers = 8;

enum class Half : std::uint8_t { a, b, lengths };

// The end of a tensor's name, which says whether the tensor is the module's A, B or lengths.
struct NameEnd {
  std::string_view text;
  Half half;
  bool is_embedding = false;
};
constexpr NameEnd kEnds[] = {
    {".lora_A.weight", Half::a},
    {".lora_B.weight", Half::b},
    {".lora_embedding_A", Half::a, true},
    {".lora_embedding_B", Half::b, true},
    {".lora_magnitude_vector", Half::lengths},
    {".lora_magnitude_vector.weight", Half::lengths},  // written by early versions
};

// Returns the reason why a tensor is refused. Precondition: the tensor is neither A nor B.
std::string_view reason_for(std::string_view name) noexcept {
  if (name.ends_with(".lora_A.bias") || name.ends_with(".lora_B.bias")) return "biases of LoRA matrices (lora_bias) are not implemented";
  if (name.find(".token_adapter.") != std::string_view::npos) {
    return "trained rows of the table of embeddings (trainable_token_indices) are not implemented";
  }
  if (name.ends_with(".bias")) return "trained biases are not implemented; train with bias = \"none\"";
  return "a tensor that was trained as a whole (modules_to_save) is not implemented; train LoRA matrices for it, or merge the adapter with PEFT";
}

Error refused_tensor(ErrorCode code, const std::string& place, std::string_view tensor, std::string_view why) {
  return error_at(code, place, "tensor {}: {}", printable(tensor, 160), why);
}

// Removes the wrappers from the end of a module's name, and returns their number.
std::uint32_t strip_wrappers(std::string_view& module) noexcept {
  std::uint32_t depth = 0;
  while (module.ends_with(kWrapper) && depth < kMostWrappers) {
    module.remove_suffix(kWrapper.size());
    ++depth;
  }
  return depth;
}

// A tensor of the file, with the module and the wrapper that its name states. From all tensors, list_modules() makes the modules.
struct NamedTensor {
  std::string_view module;
  std::uint32_t depth;
  bool is_embedding;
  Half half;
  const SafetensorsTensor* tensor;

  [[nodiscard]] auto key() const noexcept { return std::tuple(module, depth); }
};

Status check_module(const PeftModule& module, bool is_one_kind, const std::string& place) {
  const std::string_view some = (module.a != nullptr ? module.a : module.b != nullptr ? module.b : module.lengths)->name;
  if (!is_one_kind) return refused_tensor(ErrorCode::corrupt_file, place, some, "its module has matrices of two kinds");
  if (module.a == nullptr || module.b == nullptr) {
    return refused_tensor(ErrorCode::corrupt_file, place, some,
                          fmt::format("there is no {} beside it: the file is damaged", module.a == nullptr ? "lora_A" : "lora_B"));
  }
  if (module.a->dims.size() != 2 || module.b->dims.size() != 2) {
    return refused_tensor(ErrorCode::unsupported, place, (module.a->dims.size() != 2 ? module.a : module.b)->name,
                          "it is no matrix: adapters of convolutions are not implemented");
  }
  if (module.lengths != nullptr && (module.lengths->dims.empty() || module.lengths->dims.size() > 2)) {
    return refused_tensor(ErrorCode::corrupt_file, place, module.lengths->name, "expected a vector");
  }
  return {};
}

}  // namespace

Result<PeftModules> list_modules(const SafetensorsFolder& file, const std::string& place) {
  PeftModules found;
  std::vector<NamedTensor> named;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    std::string_view name = tensor.name;
    if (!name.starts_with(kFront)) {
      return refused_tensor(ErrorCode::unsupported, place, name, "expected a name that begins with \"base_model.model.\", as PEFT writes it");
    }
    name.remove_prefix(kFront.size());
    const auto* end = std::ranges::find_if(kEnds, [&](const NameEnd& known) { return name.ends_with(known.text); });
    if (end != std::end(kEnds)) {
      name.remove_suffix(end->text.size());
      const std::uint32_t depth = strip_wrappers(name);
      named.push_back({name, depth, end->is_embedding, end->half, &tensor});
      continue;
    }
    constexpr std::string_view kCopy = ".base_layer.weight";
    if (!name.ends_with(kCopy)) return refused_tensor(ErrorCode::unsupported, place, tensor.name, reason_for(name));
    name.remove_suffix(kCopy.size());
    found.copies.emplace_back(name, &tensor);
  }
  std::ranges::sort(named, {}, &NamedTensor::key);
  for (std::size_t i = 0; i < named.size();) {
    PeftModule module{.name = named[i].module, .depth = named[i].depth};
    bool is_one_kind = true, has_kind = false;
    const auto key = named[i].key();
    for (; i < named.size() && named[i].key() == key; ++i) {
      const NamedTensor& own = named[i];
      const SafetensorsTensor*& place_of_half = own.half == Half::a ? module.a : own.half == Half::b ? module.b : module.lengths;
      is_one_kind = is_one_kind && place_of_half == nullptr;
      place_of_half = own.tensor;
      if (own.half == Half::lengths) continue;
      is_one_kind = is_one_kind && (!has_kind || module.is_embedding == own.is_embedding);
      module.is_embedding = own.is_embedding;
      has_kind = true;
    }
    TESSERA_TRY_STATUS(check_module(module, is_one_kind, place));
    found.modules.push_back(module);
  }
  return found;
}

}  // namespace tessera::detail::adapters
