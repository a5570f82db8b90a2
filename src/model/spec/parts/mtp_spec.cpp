#include "model/spec/parts/mtp_spec.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::detail {

Status read_mtp_head(const SettingReader& from, ModelSpec& spec) {
  const std::string place = "key " + from.settings.called(Setting::n_further_layers);
  if (spec.n_left_out == 0) {
    return error_at(ErrorCode::not_found, place, "the model's file has no MTP head; load the model without, and choose another drafter");
  }
  const auto attends = [](const LayerSpec& layer) { return layer.mixer == Mixer::attention; };
  const auto like = std::find_if(spec.layers.rbegin(), spec.layers.rend(), attends);
  if (like == spec.layers.rend()) return error_at(ErrorCode::unsupported, place, "an MTP head of a model without attention");
  if (like->globals != 0) return error_at(ErrorCode::unsupported, place, "an MTP head of a model with global tokens");
  spec.draft_heads = {.kind = DraftHeadKind::mtp, .layers = {*like}};
  --spec.n_left_out;
  return {};
}

}  // namespace tessera::detail
