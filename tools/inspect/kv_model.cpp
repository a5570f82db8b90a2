#include "kv_model.hpp"

#include <array>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <tessera/engine.hpp>
#include <tessera/unstable/model/known_architectures.hpp>

#include "report.hpp"
#include "show.hpp"

namespace tessera::inspect {
namespace {

constexpr std::uint64_t kLargestCount = std::numeric_limits<std::int32_t>::max();

Error wrong(std::string_view key, std::string message) {
  return {ErrorCode::corrupt_file, std::move(message), fmt::format("key {}", shown(key))};
}

// A number for all layers, or a list with one number for each layer.
class PerLayer {
 public:
  static Result<PerLayer> read(const GgufFile& metadata, const std::string& key, std::uint64_t n_layers) {
    PerLayer values;
    const GgufEntry* entry = metadata.find(key);
    if (entry == nullptr || entry->type != GgufType::array) {
      const auto number = metadata.unsigned_integer(key);
      if (!number) return number.error();
      if (*number > kLargestCount) {
        return wrong(key, fmt::format("the value is {}; expected at most {}", *number, kLargestCount));
      }
      values.for_all_ = *number;
      return values;
    }
    const GgufArray array(entry->element_type, entry->count, entry->bytes);
    if (!array.is_integer() || array.size() < n_layers) {
      return wrong(key, fmt::format("expected an array of {} integers, one for each layer", n_layers));
    }
    for (std::uint64_t i = 0; i < n_layers; ++i) {
      if (array.integer(i) < 0 || array.integer(i) > static_cast<std::int64_t>(kLargestCount)) {
        return wrong(key, fmt::format("layer {} has {}; expected 0 to {}", i, array.integer(i), kLargestCount));
      }
    }
    values.array_ = array;
    return values;
  }

  // Returns the elements of each head, if the heads share `embedding` evenly; 0 otherwise. `this` holds the numbers of heads.
  [[nodiscard]] PerLayer sharing(std::uint64_t embedding) const {
    PerLayer shares = *this;
    shares.shared_ = embedding;
    return shares;
  }

  [[nodiscard]] bool same_for_all() const { return !array_; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t layer) const {
    const std::uint64_t value = array_ ? static_cast<std::uint64_t>(array_->integer(layer)) : for_all_;
    if (!shared_) return value;
    return value == 0 || *shared_ % value != 0 ? 0 : *shared_ / value;
  }

 private:
  std::uint64_t for_all_ = 0;
  std::optional<GgufArray> array_;
  std::optional<std::uint64_t> shared_;
};

Result<Plan> plan_of(const ModelSource& source, const WideLayers& wide) {
  EngineOptions options{.kv = {.wide = wide}};
  if (wide.dtype != DType::automatic) options.kv.dtype = wide.dtype == DType::f32 ? DType::f16 : DType::f32;  // unlike `wide`
  return Engine::plan(source, options);
}

// Reads the layers from the engine's plan.
void take_layers(const Plan& plan, KvModel& model) {
  model.weights = plan.weights;
  std::map<std::array<std::uint64_t, 5>, KvLayers> groups;
  for (const KvGroup& group : plan.kv_layout.groups) {
    if (group.is_recurrent()) continue;
    for (const KvLayerLayout& layer : group.layers) {
      const KvLayerShape& shape = layer.shape;
      const bool is_wide = layer.dtype != plan.kv_layout.dtype;
      KvLayers& alike = groups[{shape.kv_heads, shape.key_dim, shape.value_dim, group.window, is_wide ? 1u : 0u}];
      alike = {.layers = alike.layers + 1, .kv_heads = shape.kv_heads, .key_dim = shape.key_dim, .value_dim = shape.value_dim,
               .window = group.window, .type = is_wide ? layer.dtype : DType::automatic,
               .latent = shape.values == kv::Values::in_keys};
    }
  }
  for (const auto& [key, layers] : groups) model.groups.push_back(layers);
  if (!plan.kv_layout.has_state()) return;
  model.states = plan.kv_layout;
  model.notes.push_back(fmt::format("recurrent layers keep a state of {} bytes; the table counts the most states that a user may hold, with "
                                    "the checkpoints", plan.kv_layout.state_bytes()));
}

class KvModelReader {
 public:
  KvModelReader(const ModelFile& file, const WideLayers& wide) : file_(file), metadata_(file.metadata()), wide_(wide) {}

  Result<KvModel> read() {
    const auto architecture = metadata_.string("general.architecture");
    if (!architecture) return architecture.error();
    model_.architecture = *architecture;
    const auto context = metadata_.unsigned_integer_or(key("context_length"), 0);
    if (!context) return context.error();
    model_.context = *context;
    const auto plan = plan_of(file_, wide_);
    if (plan) take_layers(*plan, model_);
    else if (auto ok = read_layers(plan.error()); !ok) return ok.error();
    if (has("attention.key_length_mla")) {
      if (auto ok = note_saving(); !ok) return ok.error();
    }
    return std::move(model_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", model_.architecture, name); }
  [[nodiscard]] bool has(std::string_view name) const { return metadata_.find(key(name)) != nullptr; }

  // Reads the layers from the metadata of a model that the engine does not run.
  Status read_layers(const Error& why) {
    model_.weights = totals_of(file_)[""].bytes;
    model_.notes.push_back(fmt::format("the engine does not run this model ({}): figures follow the metadata, and "
                                       "the weights are the file's tensors as they are stored", shown(why.text())));
    const auto n_layers = metadata_.unsigned_integer(key("block_count"));
    if (!n_layers) return n_layers.error();
    if (*n_layers == 0 || *n_layers > kLargestCount) {
      return wrong(key("block_count"), fmt::format("{} layers; expected 1 to {}", *n_layers, kLargestCount));
    }
    // In a file without the key, each head has its own keys.
    const bool grouped = has("attention.head_count_kv");
    const auto kv_heads =
        PerLayer::read(metadata_, key(grouped ? "attention.head_count_kv" : "attention.head_count"), *n_layers);
    if (!kv_heads) return kv_heads.error();
    const auto key_dims = head_dims("attention.key_length", *n_layers);
    if (!key_dims) return key_dims.error();
    const auto value_dims = head_dims("attention.value_length", *n_layers);
    if (!value_dims) return value_dims.error();

    auto windows = of_layers("attention.sliding_window", *n_layers);
    if (!windows) return windows.error();
    // One number may hold only for some layers, and files do not always say for which.
    const auto known_period = full_attention_period(model_.architecture);
    const std::uint64_t one_window = windows->same_for_all() ? window_of((*windows)[0]) : 0;
    const std::uint64_t period = one_window != 0 ? known_period.value_or(0) : 0;
    if (const std::uint64_t window = one_window; window != 0 && !known_period) {
      model_.notes.push_back(fmt::format("the sliding window of {} tokens is not counted: which layers have it is not "
                                         "known here; --window {} counts it for all",
                                         window, window));
      *windows = PerLayer();
    }
    // Layers with global tokens keep all pages.
    auto globals = of_layers("attention.global_tokens", *n_layers);
    if (!globals) return globals.error();
    const bool alike = globals->same_for_all() && kv_heads->same_for_all() && key_dims->same_for_all() && value_dims->same_for_all() &&
                       windows->same_for_all() && period == 0;
    std::uint64_t n_kept = 0;  // layers with attention
    for (std::uint64_t i = 0; i < (alike ? 1 : *n_layers); ++i) n_kept += (*kv_heads)[i] == 0 ? 0 : alike ? *n_layers : 1;
    const bool has_wide = wide_.dtype != DType::automatic;
    const std::uint64_t n_wide = has_wide ? std::uint64_t{wide_.first} + wide_.last : 0;
    if (n_wide > n_kept) {
      return Error(ErrorCode::invalid_argument, fmt::format("{} layers are to have a type of their own, but only {} keep keys and values", n_wide, n_kept));
    }
    std::uint64_t kept = 0;
    std::map<std::array<std::uint64_t, 5>, std::uint64_t> groups;  // layers of each shape, window and type (1: wide)
    for (std::uint64_t i = 0; i < (alike ? 1 : *n_layers); ++i) {
      const bool keeps_all = (period != 0 && (i + 1) % period == 0) || (*globals)[i] != 0;
      const std::uint64_t window = keeps_all ? 0 : window_of((*windows)[i]);
      std::array<std::uint64_t, 5> layer = {(*kv_heads)[i], (*key_dims)[i], (*value_dims)[i], window, 0};
      if (layer[0] == 0) continue;  // no attention in this layer
      if (layer[1] == 0 || layer[2] == 0) {
        return wrong(key(layer[1] == 0 ? "attention.key_length" : "attention.value_length"),
                     fmt::format("layer {} has heads of no elements: the key is 0, or it is absent and the heads do "
                                 "not share the embedding evenly",
                                 i));
      }
      if (alike) {
        if (n_wide < n_kept) groups[layer] = n_kept - n_wide;
        layer[4] = 1;
        if (n_wide != 0) groups[layer] = n_wide;
        continue;
      }
      layer[4] = has_wide && (kept < wide_.first || kept >= n_kept - wide_.last) ? 1 : 0;
      ++groups[layer];
      ++kept;
    }
    for (const auto& [layer, layers] : groups) {
      model_.groups.push_back({.layers = layers, .kv_heads = layer[0], .key_dim = layer[1], .value_dim = layer[2], .window = layer[3],
                               .type = layer[4] != 0 ? wide_.dtype : DType::automatic,
                               .latent = has("attention.key_length_mla")});
    }
    return {};
  }

  // Adds a note on the bytes that the keys and values of all heads would take.
  Status note_saving() {
    std::uint64_t numbers[3];
    constexpr std::string_view kNames[] = {"attention.head_count", "attention.key_length_mla", "attention.value_length_mla"};
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const auto value = metadata_.unsigned_integer(key(kNames[i]));
      if (!value) return value.error();
      if (*value > kLargestCount) return wrong(key(kNames[i]), fmt::format("the value is {}; expected at most {}", *value, kLargestCount));
      numbers[i] = *value;
    }
    for (const KvLayers& group : model_.groups) {
      model_.notes.push_back(fmt::format("latent attention: {} numbers a token and layer, where {} heads with keys of {} and values of {} "
                                         "would have {}", group.key_dim, numbers[0], numbers[1], numbers[2],
                                         numbers[0] * (numbers[1] + numbers[2])));
    }
    return {};
  }

  // Reads a number for all layers, or one for each layer; 0: none.
  Result<PerLayer> of_layers(std::string_view name, std::uint64_t n_layers) const {
    if (!has(name)) return PerLayer();
    return PerLayer::read(metadata_, key(name), n_layers);
  }
  // Returns the window; 0 (none) if the window is not below the context.
  [[nodiscard]] std::uint64_t window_of(std::uint64_t said) const {
    return model_.context != 0 && said >= model_.context ? 0 : said;
  }

  // Reads the elements of a layer's heads: from the key, or by dividing the embedding among the heads.
  [[nodiscard]] Result<PerLayer> head_dims(std::string_view name, std::uint64_t n_layers) const {
    if (has(name)) return PerLayer::read(metadata_, key(name), n_layers);
    const auto embedding = metadata_.unsigned_integer(key("embedding_length"));
    if (!embedding) return embedding.error();
    if (*embedding > kLargestCount) {
      return wrong(key("embedding_length"),
                   fmt::format("the value is {}; expected at most {}", *embedding, kLargestCount));
    }
    const auto heads = PerLayer::read(metadata_, key("attention.head_count"), n_layers);
    if (!heads) return heads.error();
    return heads->sharing(*embedding);
  }

  const ModelFile& file_;
  const GgufFile& metadata_;
  const WideLayers& wide_;
  KvModel model_;
};

}  // namespace

Result<KvModel> read_kv_model(const ModelFile& file, const WideLayers& wide) { return KvModelReader(file, wide).read(); }

Result<KvModel> read_kv_model(const ModelSource& source, const WideLayers& wide) {
  KvModel model;
  const auto architecture = source.settings().string(Setting::architecture);
  if (!architecture) return architecture.error();
  model.architecture = *architecture;
  const auto plan = plan_of(source, wide);
  if (!plan) return plan.error();
  model.context = plan->context;
  take_layers(*plan, model);
  return model;
}

}  // namespace tessera::inspect
