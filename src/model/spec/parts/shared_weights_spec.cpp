#include "model/spec/parts/shared_weights_spec.hpp"

#include <utility>

#include "core/error.hpp"
#include "model/spec/spec_fields.hpp"

namespace tessera::detail {

namespace {

// Returns whether `layer` can compute with the weights of `owner`. The two may differ in the keys that they see and in their ropes.
bool fits_weights_of(LayerSpec layer, const LayerSpec& owner) {
  layer.rope = owner.rope;
  layer.window = owner.window;
  layer.ahead = owner.ahead;
  layer.globals = owner.globals;
  layer.weights_back = owner.weights_back;
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    const auto own = fields_of(std::as_const(layer)), theirs = fields_of(owner);
    return ((std::get<index>(own).value == std::get<index>(theirs).value) && ...);
  }(std::make_index_sequence<kListedFields<LayerSpec>>());
}

}  // namespace

Result<std::size_t> listed_layers(const SettingReader& from) {
  if (!from.settings.has(Setting::weights_of)) return std::size_t{0};
  TESSERA_TRY(const ValueList list, from.settings.list(Setting::weights_of));
  return static_cast<std::size_t>(list.size());
}

Status read_shared_weights(const SettingReader& from, ModelSpec& spec) {
  if (!from.settings.has(Setting::weights_of)) return {};
  TESSERA_TRY(const ValueList list, from.settings.list(Setting::weights_of));
  if (!list.is_integer() || list.size() != spec.n_layers()) {
    return from.corrupt(Setting::weights_of, "expected an array of {} integers, one per layer", spec.n_layers());
  }
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    const std::int64_t owner = list.integer(i);
    if (owner == std::int64_t{i}) continue;
    if (owner < 0 || owner > std::int64_t{i} || list.integer(static_cast<std::size_t>(owner)) != owner) {
      return from.corrupt(Setting::weights_of, "layer {} uses the weights of layer {}; expected an earlier layer with weights of its own", i, owner);
    }
    LayerSpec& layer = spec.layers[i];
    const LayerSpec& source = spec.layers[static_cast<std::size_t>(owner)];
    layer.routing = source.routing;  // some architectures derive the routing from the layer's tensors, which this layer lacks
    if (!fits_weights_of(layer, source)) {
      return from.corrupt(Setting::weights_of, "layer {} uses the weights of layer {}, and is of another shape", i, owner);
    }
    layer.weights_back = i - static_cast<std::uint32_t>(owner);
  }
  return {};
}

}  // namespace tessera::detail
