#include "adapters/adapter_base.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "model/load/roles.hpp"

namespace tessera::detail {

namespace {

// Returns a tensor's name without the number of its layer.
std::string_view without_layer(std::string_view name) noexcept {
  if (!layer_of(name)) return name;
  const std::size_t dot = name.find('.', name.find('.') + 1);
  return name.substr(dot + 1);
}

}  // namespace

std::vector<AdaptedTensor> adapted_tensors(const ModelSource& source) {
  std::unordered_set<std::string_view> matrices;
  for (const RoleRow& row : kRoleTable) {
    if (row.is_matrix()) matrices.insert(row.name);
  }
  std::vector<AdaptedTensor> tensors;
  for (const TensorInfo& info : source.tensors()) {
    if (info.n_dims < 2 || info.dims[3] != 1 || !matrices.contains(without_layer(info.name))) continue;
    tensors.push_back({.name = std::string(info.name), .inputs = info.dims[0], .outputs = info.dims[1], .count = info.dims[2]});
  }
  std::ranges::sort(tensors, {}, &AdaptedTensor::name);
  return tensors;
}

std::ptrdiff_t find_adapted(const AdapterBase& base, std::string_view name) noexcept {
  const auto at = std::ranges::lower_bound(base.tensors, name, {}, [](const AdaptedTensor& tensor) { return std::string_view(tensor.name); });
  return at == base.tensors.end() || at->name != name ? -1 : at - base.tensors.begin();
}

std::uint64_t most_adapter_tensors(const AdapterBase& base) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;  // the counts are a file's, and may be beyond all measure
  std::uint64_t most = 64;
  for (const AdaptedTensor& tensor : base.tensors) most = std::min(kMost, most + 16 * std::min(kMost, tensor.count));
  return most;
}

AdapterBase adapter_base_of(const ModelSource& source, std::span<const AdaptedTensor> tensors) {
  const Settings& settings = source.settings();
  const auto architecture = settings.string_or(Setting::architecture, "");
  const auto layers = settings.unsigned_integer_or(Setting::n_layers, 0), further = settings.unsigned_integer_or(Setting::n_further_layers, 0);
  const std::uint64_t n_layers = layers && further && *layers > *further ? *layers - *further : 0;
  AdapterBase base{.architecture = architecture ? *architecture : std::string_view(),
                   .settings = settings,
                   .tensors = tensors,
                   .n_layers = static_cast<std::uint32_t>(std::min<std::uint64_t>(n_layers, 1U << 16))};
  if (const std::ptrdiff_t table = find_adapted(base, row_of(Role::token_embd).name); table >= 0) {
    base.vocab_size = tensors[static_cast<std::size_t>(table)].outputs;
  }
  return base;
}

}  // namespace tessera::detail
