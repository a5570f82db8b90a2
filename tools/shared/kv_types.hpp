// Shows the KV types of a plan.
#pragma once

#include <string>

#include <fmt/format.h>

#include <tessera/kv/wide_layers.hpp>

namespace tessera::tool {

// Returns "INT4, INT8 in the first 1 and last 1 layers".
inline std::string kv_types_text(DType type, const WideLayers& wide) {
  if (wide.dtype == DType::automatic) return std::string(to_string(type));
  return fmt::format("{}, {} in the first {} and last {} layers", to_string(type), to_string(wide.dtype), wide.first, wide.last);
}

// Returns the wide layers as JSON, or null if all layers have one type. Json: nlohmann's type.
template <class Json>
Json wide_json(const WideLayers& wide) {
  if (wide.dtype == DType::automatic) return nullptr;
  return {{"dtype", to_string(wide.dtype)}, {"first", wide.first}, {"last", wide.last}};
}

}  // namespace tessera::tool
