// Reads Medusa heads (Cai et al. 2024). I is the number of a head, from 0; a head has N residual blocks, numbered J = 0 to N - 1. Names of
// tensors: I.J.linear.weight and I.J.linear.bias for block J, and I.N.weight for the output matrix, which comes after the blocks. In some
// files, names begin with "medusa_head.".
#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "heads/readers.hpp"

namespace tessera::detail::heads {

namespace {

constexpr std::uint32_t kMostHeads = 64, kMostBlocks = 64;

// The parts of a tensor's name: "1.0.linear.bias" is the bias of block 0 of head 1.
struct MedusaName {
  std::uint32_t head = 0, place = 0;
  std::string_view rest;
};

std::optional<MedusaName> medusa_name(std::string_view name) noexcept {
  for (const std::string_view prefix : {"medusa_head.", "medusa_heads."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  MedusaName result;
  for (std::uint32_t* number : {&result.head, &result.place}) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), *number);
    if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
  }
  result.rest = name;
  return result;
}

// Returns the value of a key of config.json that is a count; nullopt if the key is absent.
Result<std::optional<std::uint32_t>> stated_count(const hub::Config& config, std::string_view key, std::uint32_t most, const std::string& place) {
  const Json* value = config.find_outside(key);
  if (value == nullptr) return std::optional<std::uint32_t>();
  const std::int64_t* number = value->integer();
  if (number != nullptr && *number >= 0 && *number <= std::int64_t{most}) return std::optional<std::uint32_t>(static_cast<std::uint32_t>(*number));
  return error_at(ErrorCode::corrupt_file, place, "config.json: {} is not a number from 0 to {}", key, most);
}

}  // namespace

bool is_medusa(const ModelSource& source) noexcept {
  for (const TensorInfo& tensor : source.tensors()) {
    if (medusa_name(tensor.name)) return true;
  }
  return false;
}

Status read_medusa(const hub::Config& config, HeadFile& file) {
  TESSERA_TRY(const auto stated_heads, stated_count(config, "medusa_num_heads", kMostHeads, file.place));
  TESSERA_TRY(const auto stated_blocks, stated_count(config, "medusa_num_layers", kMostBlocks, file.place));
  std::string prefix;
  std::uint32_t n_heads = 0, n_blocks = 0;
  for (const TensorInfo& tensor : file.source->tensors()) {
    const auto name = medusa_name(tensor.name);
    const bool is_block = name && (name->rest == "linear.weight" || name->rest == "linear.bias");
    if (!name || (!is_block && name->rest != "weight") || name->head >= kMostHeads || name->place > kMostBlocks) {
      return error_at(ErrorCode::unsupported, file.place, "tensor {}: Medusa heads have no such tensor", printable(tensor.name));
    }
    prefix = tensor.name.substr(0, tensor.name.find_first_of("0123456789"));
    n_heads = std::max(n_heads, name->head + 1);
    if (is_block) n_blocks = std::max(n_blocks, name->place + 1);
  }
  // The file may have more heads than config.json states. All of them are used.
  n_heads = std::max(n_heads, stated_heads.value_or(0));
  n_blocks = std::max(n_blocks, stated_blocks.value_or(0));
  const Json* original = config.find_outside("original_lm_head");
  const bool uses_models_output = original != nullptr && original->boolean() != nullptr && *original->boolean();
  if (uses_models_output && n_blocks == 0) {
    return error_at(ErrorCode::corrupt_file, file.place, "Medusa heads without blocks that use the model's output matrix (original_lm_head) have no weights");
  }
  const auto take = [&](Role role, std::uint32_t layer, std::string name) -> Status {
    if (file.source->find_tensor(name) == nullptr) {
      return error_at(ErrorCode::not_found, file.place, "tensor {} is missing, of {} Medusa heads with {} blocks each", printable(name), n_heads, n_blocks);
    }
    file.tensors.push_back({role, layer, std::move(name)});
    return {};
  };
  const std::uint32_t layers = std::max(1u, n_blocks);  // layers of each head
  for (std::uint32_t head = 0; head < n_heads; ++head) {
    for (std::uint32_t block = 0; block < n_blocks; ++block) {
      const std::string stem = fmt::format("{}{}.{}.linear.", prefix, head, block);
      TESSERA_TRY_STATUS(take(Role::medusa_block, head * layers + block, stem + "weight"));
      if (file.source->find_tensor(stem + "bias") != nullptr) TESSERA_TRY_STATUS(take(Role::medusa_block_bias, head * layers + block, stem + "bias"));
    }
    if (uses_models_output) {
      file.width = file.source->find_tensor(file.tensors.back().name)->dims[0];
      continue;
    }
    TESSERA_TRY_STATUS(take(Role::medusa_output, (head + 1) * layers - 1, fmt::format("{}{}.{}.weight", prefix, head, n_blocks)));
    const TensorInfo& output = *file.source->find_tensor(file.tensors.back().name);
    file.width = output.dims[0];
    file.vocab_size = output.dims[1];
  }
  for (const TensorInfo& tensor : file.source->tensors()) {
    const auto is_taken = [&](const auto& taken) { return taken.name == tensor.name; };
    if (std::ranges::any_of(file.tensors, is_taken)) continue;
    return error_at(ErrorCode::unsupported, file.place, "tensor {}: {} Medusa heads with {} blocks each have no such tensor", printable(tensor.name), n_heads, n_blocks);
  }
  const LayerSpec block{.mixer = Mixer::none, .ffn = Ffn::none};
  file.spec = {.kind = DraftHeadKind::medusa, .layers = std::vector<LayerSpec>(std::size_t{n_heads} * layers, block), .most_guesses = n_heads};
  return {};
}

}  // namespace tessera::detail::heads
