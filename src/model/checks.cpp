#include "model/checks.hpp"

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "model/draft_heads.hpp"

namespace tessera::detail {

namespace {

using backend::Capability;

// A capability that some backends lack, a test whether a model needs it, and its name for errors. To add a capability, add a line below.
struct Need {
  Capability capability;
  bool (*is_in)(const ModelSpec& spec);
  std::string_view words;
};

template <class Has>
bool any_layer(const ModelSpec& spec, Has has) {
  return std::ranges::any_of(spec.layers, has);
}

constexpr Need kNeeds[] = {
    {Capability::softcap, [](const ModelSpec& s) { return s.logit_softcap != 0.0f; }, "a softcap of logits"},
    {Capability::score_softcap, [](const ModelSpec& s) { return any_layer(s, [](const LayerSpec& l) { return l.score_softcap != 0.0f; }); },
     "a softcap of attention scores"},
    {Capability::sinks, [](const ModelSpec& s) { return any_layer(s, [](const LayerSpec& l) { return l.sinks != Sinks::none; }); }, "sink logits"},
    {Capability::value_norm, [](const ModelSpec& s) { return any_layer(s, [](const LayerSpec& l) { return l.value_norm != ValueNorm::none; }); },
     "values that are normed"},
    {Capability::shared_keys, [](const ModelSpec& s) { return any_layer(s, [](const LayerSpec& l) { return l.keys_of != kOwnKeys; }); },
     "layers that share keys and values"},
    {Capability::global_tokens, [](const ModelSpec& s) { return any_layer(s, [](const LayerSpec& l) { return l.globals != 0; }); },
     "windows with global tokens"},
    {Capability::per_layer_inputs, [](const ModelSpec& s) { return s.per_layer_dim != 0; }, "embeddings of each layer"},
    {Capability::experts, [](const ModelSpec& s) { return any_layer(s, &LayerSpec::has_experts); }, "mixtures of experts"},
    {Capability::recurrence, [](const ModelSpec& s) { return any_layer(s, &LayerSpec::is_recurrent); }, "recurrent layers"},
    {Capability::recurrence, &heads_read_all_rows, "draft heads"},
    {Capability::latent, [](const ModelSpec& s) { return any_layer(s, &LayerSpec::is_latent); }, "latent attention"},
    {Capability::both_sides, [](const ModelSpec& s) { return s.sight == Sight::both_sides; }, "attention to both sides"},
    {Capability::segments, [](const ModelSpec& s) { return s.n_segments != 0; }, "embeddings of segments"},
    {Capability::temperature, [](const ModelSpec& s) { return s.temperature_rate != 0.0; }, "queries that grow with their position"},
};

constexpr std::string_view name_of(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::silu: return "SiLU";
    case ActivationKind::gelu_tanh: return "GELU, the tanh form";
    case ActivationKind::gelu_erf: return "GELU";
    case ActivationKind::clamped_swiglu: return "clamped SwiGLU";
    case ActivationKind::sigmoid: return "sigmoid";
    case ActivationKind::squared_relu: return "squared ReLU";
    case ActivationKind::tanh: return "tanh";
  }
  return "?";
}

Status check_activation(const ModelSpec& spec, ActivationKind kind, const backend::Backend& b) {
  if (b.activates(kind)) return {};
  return make_error(ErrorCode::unsupported, "architecture \"{}\": backend {} does not compute the activation \"{}\"", spec.architecture,
                    b.name(), name_of(kind));
}

}  // namespace

Status check_capabilities(const ModelSpec& spec, const backend::Backend& b) {
  for (const Need& need : kNeeds) {
    if (b.computes(need.capability) || !need.is_in(spec)) continue;
    return make_error(ErrorCode::unsupported, "architecture \"{}\": backend {} does not compute {}", spec.architecture, b.name(), need.words);
  }
  // A drafter, which runs on the CPU, reads the hidden states that heads keep in KV pages. The CPU cannot address a device's memory.
  if (heads_read_all_rows(spec) && b.on_device()) {
    return make_error(ErrorCode::unsupported, "architecture \"{}\": backend {} does not compute draft heads ({})", spec.architecture, b.name(), draft_heads_of(spec)->name);
  }
  if (spec.n_scores != 0) TESSERA_TRY_STATUS(check_activation(spec, spec.head_activation, b));
  for (const LayerSpec& layer : spec.layers) {
    if (layer.ffn != Ffn::none) TESSERA_TRY_STATUS(check_activation(spec, layer.activation, b));
    if (layer.output_gate == OutputGate::sigmoid) TESSERA_TRY_STATUS(check_activation(spec, ActivationKind::sigmoid, b));
  }
  return {};
}

Status check_layers(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) {
  if (first != 0 && spec.per_layer_dim != 0) {
    return make_error(ErrorCode::unsupported, "layers from {} on alone: each needs what it gets of the tokens, which the first computes", first);
  }
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint32_t source = spec.layers[i].keys_of;
    if (source == kOwnKeys || source >= first) continue;
    return make_error(ErrorCode::unsupported, "layers {} to {} alone: layer {} reads the keys and values of layer {}", first, last, i, source);
  }
  return {};
}

}  // namespace tessera::detail
