#include "model/spec/parts/recurrent_spec.hpp"

#include "backend/recurrent_state.hpp"

namespace tessera::detail {

namespace {

constexpr std::uint64_t kMostHeads = 4096;           // limit for the number of heads: ten times the number in real models
constexpr std::uint64_t kMostOfHead = 4096;          // limit for the keys of a head, and for the values
constexpr std::uint64_t kMostColumns = 1 << 24;      // limit for the values of all heads together

// Returns the dimensions of the model's recurrent layers, which are equal in all of them.
Result<LayerSpec> recurrent_layer(const SettingReader& from) {
  LayerSpec layer;
  layer.mixer = from.table.recurrent.mixer;
  layer.group_order = from.table.recurrent.group_order;
  const bool is_short = layer.mixer == Mixer::short_convolution;
  TESSERA_TRY(layer.conv_width, from.count(is_short ? Setting::short_conv_width : Setting::conv_width, backend::kMostConvolved));
  if (is_short) return layer;
  TESSERA_TRY(layer.state_keys, from.count(Setting::state_keys, kMostOfHead));
  TESSERA_TRY(layer.state_heads, from.count(Setting::state_heads, kMostHeads));
  TESSERA_TRY(layer.state_groups, from.count(Setting::state_groups, kMostHeads));
  TESSERA_TRY(const std::uint32_t columns, from.count(Setting::state_columns, kMostColumns));
  layer.state_values = columns / layer.state_heads;
  if (columns % layer.state_heads != 0 || layer.state_values > kMostOfHead) {
    return from.corrupt(Setting::state_columns, "{} values cannot be {} heads of up to {}", columns, layer.state_heads, kMostOfHead);
  }
  if (layer.state_heads % layer.state_groups != 0) {
    return from.corrupt(Setting::state_groups, "{} heads cannot share {} groups evenly", layer.state_heads, layer.state_groups);
  }
  return layer;
}

// Returns the setting's value for the layer with index `layer`. A file has either one value for all layers, or a list with a value for each
// layer.
Result<std::uint64_t> of_layer(const SettingReader& from, Setting setting, std::uint32_t layer, const ModelSpec& spec) {
  if (!from.settings.has_list(setting)) return from.settings.unsigned_integer(setting);
  TESSERA_TRY(const ValueList list, from.settings.list(setting));
  if (!list.is_integer() || list.size() < spec.n_layers() || list.integer(layer) < 0) {
    return from.corrupt(setting, "expected an array of {} numbers from 0 on, one per layer", spec.n_layers());
  }
  return static_cast<std::uint64_t>(list.integer(layer));
}

Result<bool> is_recurrent(const SettingReader& from, std::uint32_t layer, const ModelSpec& spec) {
  if (from.table.recurrent.layers != RecurrentLayers::interval) {
    TESSERA_TRY(const std::uint64_t kv_heads, of_layer(from, Setting::n_kv_heads, layer, spec));
    return kv_heads == 0;
  }
  if (from.settings.has(Setting::recurrent_layers)) {
    TESSERA_TRY(const ValueList said, from.settings.list(Setting::recurrent_layers));
    if ((said.type() != ValueType::boolean && !said.is_integer()) || said.size() < spec.n_layers()) {
      return from.corrupt(Setting::recurrent_layers, "expected an array of {} booleans, one per layer", spec.n_layers());
    }
    return said.integer(layer) != 0;
  }
  TESSERA_TRY(const std::uint64_t interval, from.settings.unsigned_integer_or(Setting::full_attention_interval, 4));
  if (interval == 0) return from.corrupt(Setting::full_attention_interval, "the value is 0; expected a number from 1 on");
  return (layer + std::uint64_t{1}) % interval != 0;
}

}  // namespace

Status read_mixers(const SettingReader& from, ModelSpec& spec) {
  if (from.table.recurrent.layers == RecurrentLayers::none) return {};
  TESSERA_TRY(const LayerSpec like, recurrent_layer(from));
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (from.table.recurrent.layers == RecurrentLayers::neither_kv_heads_nor_feed) {
      TESSERA_TRY(const std::uint64_t feed, of_layer(from, Setting::ffn_dim, i, spec));
      if (feed != 0) {
        layer.mixer = Mixer::none;
        continue;
      }
      layer.ffn = Ffn::none;
    }
    TESSERA_TRY(const bool recurrent, is_recurrent(from, i, spec));
    if (!recurrent) continue;
    const Ffn ffn = layer.ffn;
    layer = like;
    layer.ffn = ffn;
  }
  return {};
}

std::uint64_t state_bytes(const ModelSpec& spec, const LayerSpec& layer) noexcept {
  if (!layer.is_recurrent()) return 0;
  const bool is_short = layer.mixer == Mixer::short_convolution;
  const std::uint64_t columns = is_short ? spec.d_model : extent::mixed(spec, layer);
  return sizeof(float) * (backend::convolution_floats(layer.conv_width, columns) +
                          layer.state_heads * backend::head_state_floats(layer.state_keys, layer.state_values));
}

}  // namespace tessera::detail
