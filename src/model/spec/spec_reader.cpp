#include "model/spec/spec_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <tessera/extend/kv/kv_layout.hpp>

#include "core/printable.hpp"
#include "model/architectures.hpp"
#include "model/spec/latent_spec.hpp"
#include "model/spec/mtp_spec.hpp"
#include "model/spec/recurrent_spec.hpp"
#include "model/spec/rope_spec.hpp"
#include "model/load/shared_keys.hpp"
#include "model/spec/spec_keys.hpp"
#include "core/error.hpp"
#include "core/math.hpp"

namespace tessera::detail {

namespace {

// Keys of an architecture that change results, and the value at which they change nothing.
struct NeutralKey {
  std::string_view key;
  double neutral;
};
constexpr NeutralKey kBranchScaleKeys[] = {{"embedding_scale", 1}, {"residual_scale", 1}};
constexpr NeutralKey kLogitScaleKey = {"logit_scale", 1};
constexpr NeutralKey kNeutralKeys[] = {
    {"attention.max_alibi_bias", 0}, {"attention.clamp_kqv", 0}, {"moe_every_n_layers", 1}, {"interleave_moe_layer_step", 1},
};
constexpr NeutralKey kExpertKeys[] = {{"expert_count", 0}, {"expert_used_count", 0}};
constexpr NeutralKey kFurtherLayersKey = {"nextn_predict_layers", 0};
constexpr NeutralKey kSharedKeysKey = {"attention.shared_kv_layers", 0};
constexpr NeutralKey kPerLayerKey = {"embedding_length_per_layer_input", 0};
constexpr NeutralKey kExpertWidthKey = {"moe_latent_size", 0};
constexpr std::string_view kGlobalTokensKey = "attention.global_tokens";
constexpr NeutralKey kTemperatureKey = {"attention.temperature_scale", 0};

constexpr std::uint32_t kMostExperts = 4096;  // ten times what models have
constexpr std::uint32_t kMostUsed = 64;       // a row's; the choice looks at each expert for each of them
constexpr std::uint32_t kMostGroups = 64;

class SpecReader : private SpecKeys {
 public:
  SpecReader(const ModelFile& file, const Architecture& table) : SpecKeys(file, table) {}

  Result<ModelSpec> read(const SpecOverrides& overrides) {
    TESSERA_TRY_STATUS(refuse_unsupported());
    spec_.architecture = table_.name;
    TESSERA_TRY(auto name, meta_.string_or("general.name", ""));
    spec_.name = name;
    spec_.block = table_.block;
    spec_.positions = table_.positions;
    spec_.norm = table_.norm;
    TESSERA_TRY(const double eps, meta_.number(key(table_.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                                             : "attention.layer_norm_epsilon")));
    if (!(eps >= 0.0 && eps < 1.0)) return make_error(ErrorCode::corrupt_file, "the norm's epsilon is {}; expected 0 to 1", eps);
    spec_.norm_eps = static_cast<float>(eps);
    TESSERA_TRY(spec_.d_model, count("embedding_length"));
    TESSERA_TRY(spec_.context, count("context_length"));
    TESSERA_TRY_STATUS(read_vocabulary());
    TESSERA_TRY_STATUS(read_layers(overrides));
    if (table_.shares_keys) TESSERA_TRY_STATUS(read_shared_keys(file_, table_, spec_));
    TESSERA_TRY_STATUS(read_per_layer_inputs());
    if (table_.positions == Positions::rope) TESSERA_TRY_STATUS(read_rope(file_, table_, overrides, spec_));
    TESSERA_TRY_STATUS(read_scales());
    TESSERA_TRY_STATUS(read_latent(file_, table_, spec_));
    if (overrides.mtp == MtpHeads::load) TESSERA_TRY_STATUS(read_mtp_head(table_, spec_));
    return std::move(spec_);
  }

 private:
  Status refuse_unless_neutral(const NeutralKey& entry) const {
    const std::string full = key(entry.key);
    if (meta_.find(full) == nullptr) return {};
    TESSERA_TRY(const double value, meta_.number(full));
    if (value == entry.neutral || value == 0.0) return {};
    return error_at(ErrorCode::unsupported, place(full), "tessera does not implement this setting (value {})", value);
  }

  Status refuse_unsupported() const {
    for (const NeutralKey& entry : kNeutralKeys) TESSERA_TRY_STATUS(refuse_unless_neutral(entry));
    if (!table_.experts.some) {
      for (const NeutralKey& entry : kExpertKeys) TESSERA_TRY_STATUS(refuse_unless_neutral(entry));
    }
    if (table_.tensors[Role::experts_in] == Presence::absent) TESSERA_TRY_STATUS(refuse_unless_neutral(kExpertWidthKey));
    if (!table_.has_temperature) TESSERA_TRY_STATUS(refuse_unless_neutral(kTemperatureKey));
    if (!table_.guesses_further) TESSERA_TRY_STATUS(refuse_unless_neutral(kFurtherLayersKey));
    if (!table_.shares_keys) TESSERA_TRY_STATUS(refuse_unless_neutral(kSharedKeysKey));
    if (!table_.has_per_layer_inputs) TESSERA_TRY_STATUS(refuse_unless_neutral(kPerLayerKey));
    if (table_.scales != Scales::in_metadata) {
      for (const NeutralKey& entry : kBranchScaleKeys) TESSERA_TRY_STATUS(refuse_unless_neutral(entry));
      if (table_.scales != Scales::logits) TESSERA_TRY_STATUS(refuse_unless_neutral(kLogitScaleKey));
    }
    if (table_.windows.period == 0) TESSERA_TRY_STATUS(refuse_unless_neutral({"attention.sliding_window_pattern", 0}));
    if (table_.windows.rope != WindowedRope::unscaled) TESSERA_TRY_STATUS(refuse_unless_neutral({"rope.freq_base_swa", 0}));
    TESSERA_TRY(const bool causal, meta_.boolean_or(key("attention.causal"), true));
    if (!causal) {
      return error_at(ErrorCode::unsupported, place(key("attention.causal")), "only causal attention is implemented");
    }
    return {};
  }

  Status read_vocabulary() {
    const std::string_view name = row_of(Role::token_embd).name;
    const GgufTensor* embedding = file_.find_tensor(name);
    if (embedding == nullptr) {
      return error_at(ErrorCode::not_found, fmt::format("tensor {}", name),
                      "the file has no such tensor{}", file_.tensors().empty() ? ": it holds a vocabulary and no weights" : "");
    }
    TESSERA_TRY(spec_.vocab_size, to_count(fmt::format("{} (rows)", name), embedding->dims[1]));
    TESSERA_TRY(const std::uint64_t stated, meta_.unsigned_integer_or(key("vocab_size"), spec_.vocab_size));
    if (stated != spec_.vocab_size) {
      return error_at(ErrorCode::corrupt_file, fmt::format("tensor {} (offset {})", name, embedding->offset), "it has {} rows, but {} says {}",
                      spec_.vocab_size, key("vocab_size"), stated);
    }
    return {};
  }

  Status read_layers(const SpecOverrides& overrides) {
    TESSERA_TRY(std::uint32_t n_layers, count("block_count"));
    // Each layer has tensors, so this bounds what a wrong count can make us allocate.
    if (n_layers > file_.tensors().size()) {
      return error_at(ErrorCode::corrupt_file, place(key("block_count")), "{} layers in a file of {} tensors", n_layers,
                      file_.tensors().size());
    }
    TESSERA_TRY(const std::uint64_t left_out, meta_.unsigned_integer_or(key(kFurtherLayersKey.key), 0));
    if (left_out >= n_layers) {
      return error_at(ErrorCode::corrupt_file, place(key(kFurtherLayersKey.key)), "{} of {} layers", left_out, n_layers);
    }
    spec_.n_left_out = static_cast<std::uint32_t>(left_out);
    n_layers -= spec_.n_left_out;
    spec_.layers.resize(n_layers);
    TESSERA_TRY_STATUS(read_mixers(meta_, table_, spec_));
    TESSERA_TRY(said_to_rotate_, meta_.boolean_or(key("rope.scaling.finetuned"), false));
    TESSERA_TRY(const float score_softcap, softcap("attn_logit_softcapping", table_.softcaps.scores));
    for (std::uint32_t i = 0; i < n_layers; ++i) {
      LayerSpec& layer = spec_.layers[i];
      layer.activation = table_.activation;
      if (layer.ffn != Ffn::none) {
        layer.ffn = table_.ffn;
        TESSERA_TRY_STATUS(read_feed(layer, i, n_layers));
      }
      if (layer.mixer != Mixer::attention) continue;
      TESSERA_TRY(layer.n_heads, layer_count("attention.head_count", i, n_layers));
      layer.n_kv_heads = layer.n_heads;
      if (meta_.find(key("attention.head_count_kv")) != nullptr) {
        TESSERA_TRY(layer.n_kv_heads, layer_count("attention.head_count_kv", i, n_layers));
      }
      if (layer.n_heads % layer.n_kv_heads != 0) {
        return error_at(ErrorCode::corrupt_file, place(key("attention.head_count_kv")),
                        "{} query heads cannot share {} KV heads evenly", layer.n_heads, layer.n_kv_heads);
      }
      TESSERA_TRY(const Sees sees, seen_by(i, n_layers));
      TESSERA_TRY(layer.key_dim, head_dim(own_name("attention.key_length", sees), layer.n_heads));
      TESSERA_TRY(layer.value_dim, head_dim(own_name("attention.value_length", sees), layer.n_heads));
      layer.head_norms = table_.head_norms;
      layer.output_gate = table_.output_gate;
      layer.head_norm_place = table_.head_norm_place;
      layer.score_softcap = score_softcap;
      layer.sinks = table_.sinks;
      layer.value_norm = table_.value_norm;
      TESSERA_TRY(layer.window, window(i, n_layers, overrides));
      if (sees == Sees::all_among_windows) layer.window = 0;
      TESSERA_TRY_STATUS(read_globals(layer, i, n_layers));
      layer.rope = rope_of(i, sees);
      const bool by_width = n_layers == table_.layers_scaled_by_width;
      TESSERA_TRY(layer.scale, attention_scale(by_width ? spec_.d_model / layer.n_heads : layer.key_dim));
    }
    return {};
  }

  Status read_feed(LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers) const {
    TESSERA_TRY(const std::uint64_t n_experts, meta_.unsigned_integer_or(key("expert_count"), 0));
    TESSERA_TRY(const std::uint64_t dense, meta_.unsigned_integer_or(key("leading_dense_block_count"), 0));
    if (n_experts == 0 || !table_.experts.some || index < dense) {
      TESSERA_TRY(layer.ffn_dim, layer_count("feed_forward_length", index, n_layers));
      return {};
    }
    layer.ffn = table_.experts.ffn;
    TESSERA_TRY(layer.n_experts, count("expert_count"));
    TESSERA_TRY(layer.n_used, layer_count("expert_used_count", index, n_layers));
    if (layer.n_used > layer.n_experts || layer.n_used > kMostUsed || layer.n_experts > kMostExperts) {
      return error_at(ErrorCode::corrupt_file, place(key("expert_used_count")), "{} of {} experts; expected at most {} of {}",
                      layer.n_used, layer.n_experts, std::min(layer.n_experts, kMostUsed), kMostExperts);
    }
    TESSERA_TRY(const std::uint64_t width, meta_.unsigned_integer_or(key(kExpertWidthKey.key), 0));
    if (width != 0) {
      TESSERA_TRY(layer.expert_width, to_count(key(kExpertWidthKey.key), width));
    }
    const bool has_own_length = meta_.find(key("expert_feed_forward_length")) != nullptr;
    TESSERA_TRY(layer.ffn_dim, layer_count(has_own_length ? "expert_feed_forward_length" : "feed_forward_length", index, n_layers));
    if (layer.ffn == Ffn::dense_and_experts) {
      TESSERA_TRY(layer.shared_dim, layer_count("feed_forward_length", index, n_layers));
      return read_routing(layer);
    }
    TESSERA_TRY(const std::uint64_t n_shared, meta_.unsigned_integer_or(key("expert_shared_count"), 0));
    TESSERA_TRY(const std::uint64_t shared, meta_.unsigned_integer_or(key("expert_shared_feed_forward_length"),
                                                                      std::min<std::uint64_t>(n_shared, kMostExperts) * layer.ffn_dim));
    if (shared != 0) {
      TESSERA_TRY(layer.shared_dim, to_count(key("expert_shared_feed_forward_length"), shared));
    }
    return read_routing(layer);
  }

  Status read_routing(LayerSpec& layer) const {
    TESSERA_TRY(const std::uint64_t kind, meta_.unsigned_integer_or(key("expert_gating_func"), 0));
    switch (kind) {  // as llama.cpp numbers them
      case 0: layer.routing = table_.experts.routing; break;
      case 1: layer.routing = RoutingKind::softmax; break;
      case 2: layer.routing = RoutingKind::sigmoid; break;
      case 3: layer.routing = RoutingKind::chosen_softmax; break;
      default:
        return error_at(ErrorCode::unsupported, place(key("expert_gating_func")),
                        "the value is {}; 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) are implemented", kind);
    }
    TESSERA_TRY(const bool renormalises, meta_.boolean_or(key("expert_weights_norm"), table_.experts.renormalise == Renormalise::yes));
    layer.renormalise = renormalises ? Renormalise::yes : Renormalise::no;
    TESSERA_TRY(const double scale, positive_or_none("expert_weights_scale", 1.0));
    layer.expert_scale = scale == 0.0 ? 1.0f : static_cast<float>(scale);
    TESSERA_TRY(const std::uint64_t groups, meta_.unsigned_integer_or(key("expert_group_count"), 1));
    TESSERA_TRY(const std::uint64_t used, meta_.unsigned_integer_or(key("expert_group_used_count"), groups));
    if (groups <= 1) return {};
    if (groups > kMostGroups || layer.n_experts % groups != 0 || used == 0 || used > groups || layer.n_used > used * (layer.n_experts / groups)) {
      return error_at(ErrorCode::corrupt_file, place(key("expert_group_count")),
                      "{} of {} experts from {} of {} groups cannot be", layer.n_used, layer.n_experts, used, groups);
    }
    layer.n_groups = static_cast<std::uint32_t>(groups);
    layer.n_used_groups = static_cast<std::uint32_t>(used);
    return {};
  }

  // 0: none.
  Result<std::uint32_t> window(std::uint32_t layer, std::uint32_t n_layers, const SpecOverrides& overrides) const {
    std::uint64_t value = 0;
    if (overrides.sliding_window) {
      value = *overrides.sliding_window;
    } else {
      TESSERA_TRY(value, layer_number("attention.sliding_window", layer, n_layers, table_.windows.length));
    }
    // A window of the whole context and more masks nothing.
    return value >= spec_.context ? 0 : static_cast<std::uint32_t>(value);
  }

  // Of a layer with a window. What hides no key of the context is none.
  Status read_globals(LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers) const {
    TESSERA_TRY(const std::uint64_t globals, layer_number(kGlobalTokensKey, index, n_layers, 0));
    if (layer.window == 0 || globals == 0) return {};
    if (globals >= spec_.context - layer.window) layer.window = 0;
    else layer.globals = static_cast<std::uint32_t>(globals);
    return {};
  }

  // What a layer sees: the same as all others, or a window where others have none, or everything where others have one.
  enum class Sees : std::uint8_t { as_all, window, all_among_windows };

  // The pattern is a number, of the layers of which the last sees everything, or says of each whether it has a window.
  Result<Sees> seen_by(std::uint32_t layer, std::uint32_t n_layers) const {
    const bool has_windows = table_.windows.length != 0 || meta_.find(key("attention.sliding_window")) != nullptr;
    if (table_.windows.period == 0 || !has_windows) return Sees::as_all;
    const std::string name = key("attention.sliding_window_pattern");
    const GgufEntry* pattern = meta_.find(name);
    std::uint64_t period = table_.windows.period;
    if (pattern != nullptr && pattern->type == GgufType::array) {
      TESSERA_TRY(const GgufArray array, meta_.array(name));
      if (array.type() != GgufType::boolean || array.size() != n_layers) {
        return error_at(ErrorCode::corrupt_file, place(name), "expected a number, or an array of {} booleans, one per layer",
                        n_layers);
      }
      return array.integer(layer) != 0 ? Sees::window : Sees::all_among_windows;
    }
    if (pattern != nullptr) {
      TESSERA_TRY(period, meta_.unsigned_integer(name));
      TESSERA_TRY_STATUS(to_count(name, period));
    }
    return (layer + 1) % period == 0 ? Sees::all_among_windows : Sees::window;
  }

  [[nodiscard]] std::uint32_t rope_of(std::uint32_t layer, Sees sees) const noexcept {
    if (table_.positions != Positions::rope) return kNoRope;
    if (table_.unrotated_period != 0 && (layer + 1) % table_.unrotated_period == 0) return kNoRope;
    if (table_.rotates_if_said && !said_to_rotate_) return kNoRope;
    if (table_.windows.rope == WindowedRope::unscaled && sees == Sees::window) return kWindowedRope;
    if (table_.windows.rope == WindowedRope::alone && sees == Sees::all_among_windows) return kNoRope;
    return kRope;
  }

  // Of windowed layers: a name of their own, where the file has it.
  [[nodiscard]] std::string own_name(std::string_view name, Sees sees) const {
    const std::string own = std::string(name) + "_swa";
    return sees == Sees::window && meta_.find(key(own)) != nullptr ? own : std::string(name);
  }

  // Of the vectors that each layer gets of a token.
  Status read_per_layer_inputs() {
    TESSERA_TRY(const std::uint64_t dim, meta_.unsigned_integer_or(key(kPerLayerKey.key), 0));
    if (!table_.has_per_layer_inputs || dim == 0) return {};
    TESSERA_TRY(spec_.per_layer_dim, to_count(key(kPerLayerKey.key), dim));
    return {};
  }

  // 1 / sqrt(dim) (Vaswani et al. 2017), or what the table or the file says; 0 says nothing.
  Result<float> attention_scale(std::uint32_t dim) const {
    TESSERA_TRY(const double scale, positive_or_none("attention.scale", 0.0));
    if (scale == 0.0 && table_.score_scale != 0.0) return static_cast<float>(table_.score_scale);
    return static_cast<float>(scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(dim)) : scale);
  }

  Result<std::uint32_t> head_dim(std::string_view name, std::uint32_t n_heads) const {
    if (meta_.find(key(name)) != nullptr) return count(name);
    if (spec_.d_model % n_heads != 0) {
      return error_at(ErrorCode::corrupt_file, place(key("attention.head_count")),
                      "{} heads do not divide an embedding of {}, and {} is not given", n_heads, spec_.d_model, key(name));
    }
    return spec_.d_model / n_heads;
  }

  Status read_scales() {
    TESSERA_TRY(spec_.logit_softcap, softcap("final_logit_softcapping", table_.softcaps.logits));
    TESSERA_TRY(const double rate, meta_.number_or(key(kTemperatureKey.key), table_.temperature));
    if (table_.has_temperature && rate != 0.0) {
      TESSERA_TRY(spec_.temperature_rate, positive(kTemperatureKey.key, table_.temperature));
      TESSERA_TRY(const std::uint64_t original, original_context(spec_.context));
      TESSERA_TRY(const std::uint64_t length, meta_.unsigned_integer_or(key("attention.temperature_length"), original));
      TESSERA_TRY(spec_.temperature_length, to_count(key("attention.temperature_length"), length));
    }
    if (table_.scales == Scales::root_of_width) {
      spec_.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(spec_.d_model)));
    }
    if (table_.scales == Scales::logits) {
      TESSERA_TRY(const double logits, positive("logit_scale", 1.0));
      spec_.logit_scale = static_cast<float>(logits);
    }
    if (table_.scales != Scales::in_metadata) return {};
    TESSERA_TRY(const double embedding, positive("embedding_scale", 1.0));
    TESSERA_TRY(const double residual, positive("residual_scale", 1.0));
    TESSERA_TRY(const double logit, positive("logit_scale", 1.0));
    spec_.embedding_scale = static_cast<float>(embedding);
    spec_.logit_scale = static_cast<float>(1.0 / logit);
    for (LayerSpec& layer : spec_.layers) layer.residual_scale = static_cast<float>(residual);
    return {};
  }

  ModelSpec spec_;
  bool said_to_rotate_ = false;
};

}  // namespace

Result<const Architecture*> find_architecture(const GgufFile& metadata) {
  TESSERA_TRY(const auto name, metadata.string("general.architecture"));
  if (const Architecture* table = arch::find(name)) return table;
  std::string known;
  for (const Architecture* table : arch::kAll) known += (known.empty() ? "" : ", ") + std::string(table->name);
  return error_at(ErrorCode::unsupported, "key general.architecture", "unknown architecture \"{}\"; tessera has {}",
                  printable(name), known);
}

Result<ModelSpec> read_spec(const ModelFile& file, const Architecture& table, const SpecOverrides& overrides) {
  return SpecReader(file, table).read(overrides);
}

}  // namespace tessera::detail
