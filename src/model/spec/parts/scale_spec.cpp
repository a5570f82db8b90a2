#include "model/spec/parts/scale_spec.hpp"

#include <cmath>

namespace tessera::detail {

namespace {

// Reads how queries grow with their position (the factor by which they are multiplied).
Status read_temperature(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(const double rate, from.settings.number_or(Setting::temperature_scale, from.table.temperature));
  if (!from.table.has_temperature || rate == 0.0) return {};
  TESSERA_TRY(spec.temperature_rate, from.positive(Setting::temperature_scale, from.table.temperature));
  TESSERA_TRY(const std::uint64_t original, from.original_context(spec.context));
  TESSERA_TRY(const std::uint64_t length, from.settings.unsigned_integer_or(Setting::temperature_length, original));
  TESSERA_TRY(spec.temperature_length, from.to_count(Setting::temperature_length, length));
  return {};
}

}  // namespace

Status read_scales(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(spec.logit_softcap, from.softcap(Setting::logit_softcap, from.table.softcaps.logits));
  TESSERA_TRY_STATUS(read_temperature(from, spec));
  switch (from.table.scales) {
    case Scales::none: return {};
    case Scales::root_of_width:
      spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(spec.d_model)));
      return {};
    case Scales::logits: {
      TESSERA_TRY(const double logits, from.positive(Setting::logit_scale, 1.0));
      spec.logit_scale = static_cast<float>(logits);
      return {};
    }
    case Scales::in_metadata: {
      TESSERA_TRY(const double embedding, from.positive(Setting::embedding_scale, 1.0));
      TESSERA_TRY(const double residual, from.positive(Setting::residual_scale, 1.0));
      TESSERA_TRY(const double logit, from.positive(Setting::logit_scale, 1.0));
      spec.embedding_scale = static_cast<float>(embedding);
      spec.logit_scale = static_cast<float>(1.0 / logit);
      for (LayerSpec& layer : spec.layers) layer.residual_scale = static_cast<float>(residual);
      return {};
    }
  }
  return {};
}

}  // namespace tessera::detail
