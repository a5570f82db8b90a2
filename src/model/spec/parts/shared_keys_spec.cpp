#include "model/spec/parts/shared_keys_spec.hpp"

#include <string>

#include "core/error.hpp"

namespace tessera::detail {

Status read_shared_keys(const SettingReader& from, ModelSpec& spec) {
  if (!from.table.shares_keys) return {};
  TESSERA_TRY(const std::uint64_t shared, from.settings.unsigned_integer_or(Setting::shared_kv_layers, 0));
  if (shared >= spec.layers.size()) {
    return from.corrupt(Setting::shared_kv_layers, "{} of {} layers share keys and values; the first of all has its own", shared,
                        spec.layers.size());
  }
  if (from.table.tensors[Role::attn_v] == Presence::optional) {
    for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
      const LayerSpec& layer = spec.layers[i];
      if (layer.key_dim == layer.value_dim || from.has_tensor(Role::attn_v, i)) continue;
      return error_at(ErrorCode::corrupt_file, "tensor " + from.called(Role::attn_v, i),
                      "the file lacks it: values have {} elements and keys {}, so keys cannot serve as values", layer.value_dim, layer.key_dim);
    }
  }
  const std::size_t own = spec.layers.size() - static_cast<std::size_t>(shared);
  const auto is_alike = [](const LayerSpec& a, const LayerSpec& b) {
    return a.rope == b.rope && a.window == b.window && a.globals == b.globals && a.n_kv_heads == b.n_kv_heads && a.key_dim == b.key_dim && a.value_dim == b.value_dim;
  };
  for (std::size_t i = own; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    std::size_t source = own;
    while (source > 0 && !is_alike(spec.layers[source - 1], layer)) --source;
    if (source == 0) {
      return from.corrupt(Setting::shared_kv_layers,
                          "layer {} shares the keys and values of another layer, but none of the first {} layers has the same window and heads", i, own);
    }
    layer.keys_of = static_cast<std::uint32_t>(source - 1);
  }
  return {};
}

}  // namespace tessera::detail
