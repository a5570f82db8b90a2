#include "model/spec/parts/attention_spec.hpp"

#include <cmath>

#include <tessera/extend/kv/kv_layout.hpp>

#include "model/spec/parts/rope_spec.hpp"

namespace tessera::detail {

namespace {

// Says which keys a layer sees.
// - as_all: the architecture does not mix layers with and without a window, or the model has no windows.
// - window: the model mixes layers with and without a window, and this layer has a window.
// - all_among_windows: the model mixes layers with and without a window, and this layer sees all keys.
enum class Sees : std::uint8_t { as_all, window, all_among_windows };

// Returns which keys the layer sees. A file states which layers have a window as a number N (every N-th layer sees all keys), or as a
// list of booleans, one for each layer (true: the layer has a window).
Result<Sees> seen_by(const SettingReader& from, std::uint32_t layer, std::uint32_t n_layers) {
  const bool has_windows = from.table.windows.length != 0 || from.settings.has(Setting::window);
  if (from.table.windows.period == 0 || !has_windows) return Sees::as_all;
  if (from.settings.has_list(Setting::window_pattern)) {
    TESSERA_TRY(const ValueList pattern, from.settings.list(Setting::window_pattern));
    if (pattern.type() != ValueType::boolean || pattern.size() != n_layers) {
      return from.corrupt(Setting::window_pattern, "expected a number, or an array of {} booleans, one per layer", n_layers);
    }
    return pattern.integer(layer) != 0 ? Sees::window : Sees::all_among_windows;
  }
  std::uint64_t period = from.table.windows.period;
  if (from.settings.has(Setting::window_pattern)) {
    TESSERA_TRY(period, from.count(Setting::window_pattern));
  }
  const std::uint32_t number = from.table.windows.first_sees_all ? layer : layer + 1;
  return number % period == 0 ? Sees::all_among_windows : Sees::window;
}

// Returns the layer's window; 0 if it has none. A window that is not smaller than the context hides nothing and counts as none.
Result<std::uint32_t> window_of(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t layer, const ModelSpec& spec) {
  std::uint64_t value = overrides.sliding_window.value_or(0);
  if (!overrides.sliding_window) {
    TESSERA_TRY(value, from.layer_number(Setting::window, layer, spec.n_layers(), from.table.windows.length));
  }
  // An encoder's window reaches half of its length to each side.
  const std::uint64_t reach = from.table.encodes ? value / 2 + 1 : value;
  return reach >= spec.context ? 0 : static_cast<std::uint32_t>(value);
}

Status read_window(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t index, Sees sees, ModelSpec& spec) {
  LayerSpec& layer = spec.layers[index];
  TESSERA_TRY(layer.window, window_of(from, overrides, index, spec));
  if (sees == Sees::all_among_windows) layer.window = 0;
  TESSERA_TRY(const std::uint64_t globals, from.layer_number(Setting::global_tokens, index, spec.n_layers(), 0));
  if (layer.window == 0 || globals == 0) return {};
  if (globals >= spec.context - layer.window) layer.window = 0;  // window and global tokens together show the whole context
  else layer.globals = static_cast<std::uint32_t>(globals);
  return {};
}

// Makes a layer of an encoder see later keys. A window of w keys reaches w / 2 keys to each side.
void look_ahead(LayerSpec& layer) noexcept {
  layer.ahead = layer.window == 0 ? kAllAhead : layer.window / 2;
  if (layer.window != 0) layer.window = layer.window / 2 + 1;
}

Result<std::uint32_t> rope_of(const SettingReader& from, std::uint32_t layer, std::uint32_t n_layers, Sees sees) {
  const Architecture& table = from.table;
  TESSERA_TRY(const bool is_said, from.settings.boolean_or(Setting::rope_is_finetuned, false));
  if (table.positions != Positions::rope) return kNoRope;
  if (from.settings.has_list(Setting::rope_dim)) {
    TESSERA_TRY(const std::uint64_t dim, from.layer_number(Setting::rope_dim, layer, n_layers, 0));
    if (dim == 0) return kNoRope;
  } else if (table.unrotated_period != 0 && (layer + 1) % table.unrotated_period == 0) {
    return kNoRope;
  }
  if (table.rotates_if_said && !is_said) return kNoRope;
  if (table.windows.rope == WindowedRope::unscaled && sees == Sees::window) return kWindowedRope;
  if (table.windows.rope == WindowedRope::alone && sees == Sees::all_among_windows) return kNoRope;
  return kRope;
}

// Returns the number of elements of a head: the value of `setting`; d_model / n_heads if the file does not have the setting. Exception: a
// layer with Sees::window uses the setting `own`, if the file has it.
Result<std::uint32_t> head_dim(const SettingReader& from, Setting setting, Setting own, Sees sees, std::uint32_t n_heads, const ModelSpec& spec) {
  if (sees == Sees::window && from.settings.has(own)) return from.count(own);
  if (from.settings.has(setting)) return from.count(setting);
  if (spec.d_model % n_heads == 0) return spec.d_model / n_heads;
  return from.corrupt(Setting::n_heads, "{} heads do not divide an embedding of {}, and {} is not given", n_heads, spec.d_model,
                      from.settings.called(setting));
}

Status read_heads(const SettingReader& from, std::uint32_t index, Sees sees, ModelSpec& spec) {
  LayerSpec& layer = spec.layers[index];
  TESSERA_TRY(layer.n_heads, from.layer_count(Setting::n_heads, index, spec.n_layers()));
  layer.n_kv_heads = layer.n_heads;
  if (from.settings.has(Setting::n_kv_heads)) {
    TESSERA_TRY(layer.n_kv_heads, from.layer_count(Setting::n_kv_heads, index, spec.n_layers()));
  }
  if (layer.n_heads % layer.n_kv_heads != 0) {
    return from.corrupt(Setting::n_kv_heads, "{} query heads cannot share {} KV heads evenly", layer.n_heads, layer.n_kv_heads);
  }
  TESSERA_TRY(layer.key_dim, head_dim(from, Setting::key_dim, Setting::windowed_key_dim, sees, layer.n_heads, spec));
  TESSERA_TRY(layer.value_dim, head_dim(from, Setting::value_dim, Setting::windowed_value_dim, sees, layer.n_heads, spec));
  return {};
}

// Returns the factor of attention scores: the factor that the file states. If the file states none, or 0: Architecture::score_scale. If
// that is 0 too: 1 / sqrt(key_dim) (Vaswani et al. 2017). Exception: if the model has exactly Architecture::layers_scaled_by_width layers,
// 1 / sqrt(d_model / n_heads) takes the place of 1 / sqrt(key_dim).
Result<float> score_scale(const SettingReader& from, const LayerSpec& layer, const ModelSpec& spec) {
  TESSERA_TRY(const double scale, from.positive_or_none(Setting::score_scale, 0.0));
  if (scale != 0.0) return static_cast<float>(scale);
  if (from.table.score_scale != 0.0) return static_cast<float>(from.table.score_scale);
  const bool by_width = spec.n_layers() == from.table.layers_scaled_by_width;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(by_width ? spec.d_model / layer.n_heads : layer.key_dim)));
}

}  // namespace

Status read_attention(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t index, ModelSpec& spec) {
  LayerSpec& layer = spec.layers[index];
  const Architecture& table = from.table;
  TESSERA_TRY(const Sees sees, seen_by(from, index, spec.n_layers()));
  TESSERA_TRY_STATUS(read_heads(from, index, sees, spec));
  TESSERA_TRY_STATUS(read_window(from, overrides, index, sees, spec));
  if (table.encodes) look_ahead(layer);
  TESSERA_TRY(layer.rope, rope_of(from, index, spec.n_layers(), sees));
  TESSERA_TRY(layer.scale, score_scale(from, layer, spec));
  TESSERA_TRY(layer.score_softcap, from.softcap(Setting::score_softcap, table.softcaps.scores));
  layer.head_norms = table.head_norms;
  layer.output_gate = table.output_gate;
  layer.head_norm_place = table.head_norm_place;
  layer.sinks = table.sinks;
  layer.value_norm = table.value_norm;
  return {};
}

}  // namespace tessera::detail
