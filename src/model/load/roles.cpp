#include "model/load/roles.hpp"

#include <charconv>

namespace tessera {

namespace {

constexpr std::string_view kLayer = "blk.";  // in front of the number of the layer

}  // namespace

std::string RoleRow::tensor_name(std::uint32_t layer) const {
  if (owner == Owner::model) return std::string(name);
  return std::string(kLayer) + std::to_string(layer) + "." + std::string(name);
}

std::optional<std::uint32_t> detail::layer_of(std::string_view tensor_name) noexcept {
  if (!tensor_name.starts_with(kLayer)) return std::nullopt;
  std::uint32_t layer = 0;
  const char* const end = tensor_name.data() + tensor_name.size();
  const auto [behind, error] = std::from_chars(tensor_name.data() + kLayer.size(), end, layer);
  if (error != std::errc() || behind == end || *behind != '.') return std::nullopt;
  return layer;
}

}  // namespace tessera
