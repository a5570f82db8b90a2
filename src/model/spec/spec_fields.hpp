// Lists the fields of the structs that make up a model's spec, for code that must treat every field (to compare specs, or to write one as
// text). If a field is added to a struct but not to its list, a static_assert fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera::detail {

// Says whether the field changes what the model computes for a sequence (keys, values, states, logits). If so (yes, if_set), the field is
// part of the spec's text (spec_text()). if_set: the text has the field only if the field's value is not the default. So if a new field is
// added with if_set, the texts of models that do not set the field stay as they were.
enum class Counts : std::uint8_t { no, yes, if_set };

template <class T>
struct Field {
  std::string_view name;
  const T& value;
  Counts counts = Counts::yes;
};
template <class T>
Field(std::string_view, const T&, Counts = Counts::yes) -> Field<T>;  // clang 14 does not deduce this by itself

// Returns the name that a spec's text gives to the list of draft heads' layers. Each kind has another name, so that the texts differ.
[[nodiscard]] constexpr std::string_view name_of(DraftHeadKind kind) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"no_heads", "mtp_heads", "medusa_heads", "eagle_heads", "eagle3_heads"};
  return kNames[static_cast<std::size_t>(kind)];
}

[[nodiscard]] inline auto fields_of(const RopeSpec& rope) noexcept {
  return std::tuple{Field{"pairs", rope.pairs}, Field{"dim", rope.dim}, Field{"theta", rope.theta},
                    Field{"linear_factor", rope.linear_factor},
                    Field{"first_slowed", rope.first_slowed},
                    Field{"all_slowed", rope.all_slowed},
                    Field{"factors", rope.factors},
                    Field{"magnitude", rope.magnitude}};
}

[[nodiscard]] inline auto fields_of(const LayerSpec& layer) noexcept {
  return std::tuple{Field{"mixer", layer.mixer},
                    Field{"n_heads", layer.n_heads},
                    Field{"n_kv_heads", layer.n_kv_heads},
                    Field{"key_dim", layer.key_dim},
                    Field{"value_dim", layer.value_dim},
                    Field{"rope", layer.rope},
                    Field{"window", layer.window},
                    Field{"ahead", layer.ahead, Counts::if_set},
                    Field{"globals", layer.globals},
                    Field{"scale", layer.scale},
                    Field{"score_softcap", layer.score_softcap},
                    Field{"sinks", layer.sinks},
                    Field{"head_norms", layer.head_norms},
                    Field{"head_norm_place", layer.head_norm_place},
                    Field{"value_norm", layer.value_norm},
                    Field{"keys_of", layer.keys_of},
                    Field{"output_gate", layer.output_gate},
                    Field{"plain_dim", layer.plain_dim},
                    Field{"head_value_dim", layer.head_value_dim},
                    Field{"query_rank", layer.query_rank},
                    Field{"conv_width", layer.conv_width},
                    Field{"state_heads", layer.state_heads},
                    Field{"state_groups", layer.state_groups},
                    Field{"state_keys", layer.state_keys},
                    Field{"state_values", layer.state_values},
                    Field{"group_order", layer.group_order},
                    Field{"ffn", layer.ffn},
                    Field{"activation", layer.activation},
                    Field{"ffn_dim", layer.ffn_dim},
                    Field{"n_experts", layer.n_experts},
                    Field{"n_used", layer.n_used},
                    Field{"n_groups", layer.n_groups},
                    Field{"n_used_groups", layer.n_used_groups},
                    Field{"group_score", layer.group_score},
                    Field{"routing", layer.routing},
                    Field{"renormalise", layer.renormalise},
                    Field{"expert_scale", layer.expert_scale},
                    Field{"shared_dim", layer.shared_dim},
                    Field{"expert_width", layer.expert_width},
                    Field{"residual_scale", layer.residual_scale},
                    Field{"weights_back", layer.weights_back, Counts::if_set}};
}

[[nodiscard]] inline auto fields_of(const ModelSpec& model) noexcept {
  return std::tuple{Field{"architecture", model.architecture},
                    Field{"name", model.name, Counts::no},
                    Field{"vocab_size", model.vocab_size},
                    Field{"d_model", model.d_model},
                    Field{"context", model.context, Counts::no},
                    Field{"norm", model.norm},
                    Field{"norm_eps", model.norm_eps},
                    Field{"block", model.wiring},
                    Field{"positions", model.positions},
                    Field{"sight", model.sight, Counts::if_set},
                    Field{"pooling", model.pooling, Counts::no},
                    Field{"has_logits", model.has_logits, Counts::no},
                    Field{"n_segments", model.n_segments, Counts::if_set},
                    Field{"embedding_inner", model.embedding_inner, Counts::no},
                    Field{"embedding_dim", model.embedding_dim, Counts::no},
                    Field{"n_scores", model.n_scores, Counts::no},
                    Field{"head_activation", model.head_activation, Counts::no},
                    Field{"embedding_scale", model.embedding_scale},
                    Field{"logit_scale", model.logit_scale},
                    Field{"logit_softcap", model.logit_softcap},
                    Field{"temperature_rate", model.temperature_rate},
                    Field{"temperature_length", model.temperature_length},
                    Field{"per_layer_dim", model.per_layer_dim},
                    Field{"n_left_out", model.n_left_out, Counts::no},
                    Field{"ropes", model.ropes},
                    Field{"layers", model.layers},
                    Field{name_of(model.draft_heads.kind), model.draft_heads.layers},
                    Field{"head_norm_eps", model.draft_heads.norm_eps, Counts::if_set},
                    Field{"head_residual", model.draft_heads.residual, Counts::if_set},
                    Field{"head_low", model.draft_heads.features[0], Counts::if_set},
                    Field{"head_mid", model.draft_heads.features[1], Counts::if_set},
                    Field{"head_high", model.draft_heads.features[2], Counts::if_set}};
}

// For the static_asserts below. field_count() returns the number of fields of an aggregate: the largest number of initializers that it
// accepts. AnyField is an initializer that fits a field of any type.
struct AnyField {
  template <class T>
  operator T() const;
};
template <class Struct, class... Fields>
constexpr std::size_t field_count() noexcept {
  if constexpr (requires { Struct{Fields{}..., AnyField{}}; }) {
    return field_count<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

template <class Struct>
inline constexpr std::size_t kListedFields = std::tuple_size_v<decltype(fields_of(std::declval<const Struct&>()))>;

static_assert(kListedFields<RopeSpec> == field_count<RopeSpec>(), "fields_of(RopeSpec) is to list all fields");
static_assert(kListedFields<LayerSpec> == field_count<LayerSpec>(), "fields_of(LayerSpec) is to list all fields");
// Instead of the one field draft_heads, fields_of(ModelSpec) lists 6 values in it that change a sequence (see Counts). Hence + 5.
static_assert(kListedFields<ModelSpec> == field_count<ModelSpec>() + 5, "fields_of(ModelSpec) is to list all fields");
static_assert(field_count<DraftHeadSpec>() == 7, "fields_of(ModelSpec) is to list all fields of DraftHeadSpec that sequences depend on");

}  // namespace tessera::detail
