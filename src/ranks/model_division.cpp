#include "ranks/model_division.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/spec/parts/recurrent_spec.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/role_splits.hpp"

namespace tessera::detail {

namespace {

// Divides columns in pieces of up to 64, so that each rank's part fills whole panels of a packed matrix.
Division columns(std::uint64_t n, std::uint32_t ranks) {
  std::uint64_t piece = 64;
  while (piece > 1 && (n % piece != 0 || n / piece < ranks)) piece /= 2;
  return {n, ranks, piece};
}

bool can_be_divided(const LayerSpec& layer, std::uint32_t ranks) noexcept {
  return layer.mixer == Mixer::attention && !layer.is_latent() && layer.n_kv_heads >= ranks && layer.head_norms != HeadNorms::together;
}

// Returns for each layer the rank that computes its whole mixer. Ranks take turns.
std::vector<std::uint32_t> whole_mixers(const ModelSpec& spec, std::uint32_t ranks) {
  std::vector<std::uint32_t> mixers;
  std::uint32_t next = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.keys_of != kOwnKeys) {
      mixers.push_back(mixers[layer.keys_of]);  // the rank that has the keys
    } else if (layer.mixer == Mixer::none || can_be_divided(layer, ranks)) {
      mixers.push_back(kEveryRank);
    } else {
      mixers.push_back(next++ % ranks);
    }
  }
  return mixers;
}

// Returns for each layer the rank that computes it: about equally many layers for each rank. A layer that shares an earlier layer's keys is
// on the rank of that earlier layer.
std::vector<std::uint32_t> whole_layers(const ModelSpec& spec, std::uint32_t ranks) {
  const Division layers(spec.n_layers(), ranks);
  std::vector<std::uint32_t> owners;
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    const std::uint32_t keys_of = spec.layers[i].keys_of;
    owners.push_back(keys_of != kOwnKeys ? owners[keys_of] : layers.rank_of(i));
  }
  return owners;
}

}  // namespace

ModelDivision::ModelDivision(const ModelSpec& spec, std::uint32_t ranks, RankSplit split)
    : spec_(spec), ranks_(ranks), split_(split), owners_(split == RankSplit::layers ? whole_layers(spec, ranks) : whole_mixers(spec, ranks)) {}

Result<std::shared_ptr<const ModelDivision>> ModelDivision::make(const ModelSpec& spec, std::uint32_t ranks, RankSplit split) {
  const auto too_few = [&](std::uint64_t n, const char* what) {
    return make_error(ErrorCode::unsupported, "{} ranks, and the model has {} {}: choose at most as many ranks", ranks, n, what);
  };
  if (spec.has_draft_heads()) return make_error(ErrorCode::unsupported, "draft heads are not divided among ranks: leave them out, or use one rank");
  const auto shares = [](const LayerSpec& layer) { return layer.weights_back != 0; };
  if (std::ranges::any_of(spec.layers, shares)) return make_error(ErrorCode::unsupported, "layers that share weights are not divided among ranks: use one rank");
  if (spec.d_model < ranks) return too_few(spec.d_model, "columns");
  if (spec.vocab_size < ranks) return too_few(spec.vocab_size, "tokens");
  if (split == RankSplit::layers && spec.n_layers() < ranks) return too_few(spec.n_layers(), "layers");
  for (const LayerSpec& layer : spec.layers) {
    if (split == RankSplit::layers) break;
    if (layer.ffn != Ffn::none && layer.ffn_dim < ranks) return too_few(layer.ffn_dim, "columns in an FFN");
    if (layer.shared_dim != 0 && layer.shared_dim < ranks) return too_few(layer.shared_dim, "columns in a shared expert");
    if (layer.expert_width != 0 && layer.expert_width < ranks) return too_few(layer.expert_width, "columns in an expert");
    if (spec.per_layer_dim != 0 && spec.per_layer_dim < ranks) return too_few(spec.per_layer_dim, "columns in a layer's own input");
  }
  return std::shared_ptr<const ModelDivision>(new ModelDivision(spec, ranks, split));
}

ModelSpec ModelDivision::spec_of(std::uint32_t rank) const {
  ModelSpec own = spec_;
  if (split_ == RankSplit::layers) return own;
  for (std::uint32_t i = 0; i < own.layers.size(); ++i) {
    LayerSpec& layer = own.layers[i];
    if (layer.mixer == Mixer::attention && !is_whole(i)) {
      const auto heads = static_cast<std::uint32_t>(Division(layer.n_kv_heads, ranks_).size(rank));
      layer.n_heads = layer.n_heads / layer.n_kv_heads * heads;
      layer.n_kv_heads = heads;
    }
    if (layer.ffn != Ffn::none) layer.ffn_dim = static_cast<std::uint32_t>(columns(layer.ffn_dim, ranks_).size(rank));
    if (layer.shared_dim != 0) layer.shared_dim = static_cast<std::uint32_t>(columns(layer.shared_dim, ranks_).size(rank));
  }
  return own;
}

std::vector<LayerPlace> ModelDivision::places_of(std::uint32_t rank) const {
  std::vector<LayerPlace> places;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const std::uint32_t of = owners_[i];
    places.push_back({.rank = of,
                      .here = of == kEveryRank || of == rank,
                      .of = split_ == RankSplit::layers ? LayerPlace::Of::layer : LayerPlace::Of::mixer,
                      .shares = i + 1 == owners_.size() || owners_[i + 1] != of});
  }
  return places;
}

Division ModelDivision::rows_of(const Binding& binding) const {
  const backend::MatrixShape whole = binding.whole_shape();
  const std::uint64_t n = binding.is_matrix ? whole.outputs : whole.inputs;
  if (is_of_whole_layer(binding)) return {};
  switch (split_of(binding.role)) {
    case Split::by_token: return columns(n, ranks_);
    case Split::by_head:
    case Split::by_kv_head: {
      if (is_whole(binding.layer)) return {};
      const std::uint64_t kv_heads = spec_.layer(binding.layer).n_kv_heads;
      return Division(kv_heads, ranks_).times(n / kv_heads);
    }
    case Split::of_heads: return is_whole(binding.layer) ? Division() : columns(n, ranks_);
    case Split::by_column:
    case Split::by_output:
    case Split::of_columns:
    case Split::of_experts: return columns(n, ranks_);
    case Split::nowhere:
    case Split::everywhere:
    case Split::with_mixer: break;
  }
  return {};
}

std::vector<Binding> ModelDivision::bindings_of(std::uint32_t rank, std::span<const Binding> whole) const {
  std::vector<Binding> own(whole.begin(), whole.end());
  for (Binding& binding : own) {
    const Split split = split_of(binding.role);
    const bool is_of_mixer = split == Split::by_head || split == Split::by_kv_head || split == Split::of_heads || split == Split::with_mixer;
    if ((is_of_mixer || is_of_whole_layer(binding)) && is_whole(binding.layer)) binding.own.here = owners_[binding.layer] == rank;
    const Division rows = rows_of(binding);
    if (rows.empty()) continue;
    binding.own.first = rows.first(rank);
    binding.own.whole = rows.total();
    (binding.is_matrix ? binding.shape.outputs : binding.shape.inputs) = rows.size(rank);
  }
  return own;
}

KvLayout ModelDivision::layout_of(std::uint32_t rank, const KvLayout& whole) const {
  KvLayout own = whole;
  for (std::uint32_t i = 0; i < owners_.size(); ++i) {
    const KvPlace place = whole.layers[i];
    KvLayerLayout& layer = own.groups[place.group].layers[place.layer];
    if (!whole.is_first_at_its_place(i)) continue;  // changed already
    if (owners_[i] != kEveryRank) {
      if (owners_[i] != rank) layer.shape.kv_heads = 0;
      continue;
    }
    const Division heads(layer.shape.kv_heads, ranks_);
    layer.k_offset += heads.first(rank) * layer.k_stride;
    layer.v_offset += heads.first(rank) * layer.v_stride;
    layer.shape.kv_heads = static_cast<std::uint32_t>(heads.size(rank));
  }
  return own;
}

ModelDivision::Heads ModelDivision::heads_of(std::uint32_t rank, std::uint32_t layer, std::uint64_t all) const {
  if (is_whole(layer)) return {.first = 0, .size = owners_[layer] == rank ? all : 0};
  const Division heads(all, ranks_);
  return {.first = heads.first(rank), .size = heads.size(rank)};
}

Result<KvLayout> ModelDivision::own_layout_of(std::uint32_t rank, const KvLayout& other) const {
  if (other.layers.size() != owners_.size()) {
    return make_error(ErrorCode::internal, "a KV layout of {} layers, and the model has {}", other.layers.size(), owners_.size());
  }
  std::vector<KvLayerNeeds> needs;
  for (std::uint32_t i = 0; i < owners_.size(); ++i) {
    const KvLayerLayout& layer = other.layer(i);
    const std::size_t first = other.first_layer_at(other.layers[i]);
    KvLayerNeeds& own = needs.emplace_back(KvLayerNeeds{.shape = layer.shape, .window = other.group_of(i).window, .dtype = layer.dtype});
    if (first != i) own.shares = static_cast<std::uint32_t>(first);
    // A layer that shares an earlier layer's keys has the shape of that earlier layer.
    const auto decides = static_cast<std::uint32_t>(first);
    const LayerSpec& spec = spec_.layer(decides);
    const bool is_here = owners_[decides] == kEveryRank || owners_[decides] == rank;
    const bool is_recurrent = spec.is_recurrent();
    const bool fits = is_recurrent ? layer.shape.state_bytes != 0
                                   : spec.mixer == Mixer::none || (layer.shape.key_dim == spec.key_dim && layer.shape.value_dim == spec.value_dim &&
                                                                   (layer.shape.values == kv::Values::in_keys) == spec.is_latent());
    if (!fits) return make_error(ErrorCode::internal, "layer {} of a KV layout is not the model's", i);
    if (layer.shape.state_bytes != 0) {
      own.shape.state_bytes = is_here ? state_bytes(spec_, spec) : sizeof(float);
      own.dtype = DType::automatic;
    } else if (spec.mixer != Mixer::none) {
      const std::uint64_t heads = owners_[decides] == kEveryRank ? Division(spec.n_kv_heads, ranks_).size(rank) : is_here ? spec.n_kv_heads : 1;
      own.shape.kv_heads = static_cast<std::uint32_t>(heads);
    }
  }
  return make_kv_layout(needs, other.dtype, other.page_tokens);
}

void ModelDivision::tell(RankBackend& backend, const Model& model, std::span<const Binding> bindings) const {
  for (const Binding& binding : bindings) {
    if (!binding.is_matrix || !binding.own.here || is_of_whole_layer(binding)) continue;
    const Weights& weights = row_of(binding.role).owner == Owner::model ? model.weights : model.layer_weights[binding.layer];
    DividedMatrix divided;
    const std::uint64_t n = binding.shape.inputs;
    switch (split_of(binding.role)) {
      case Split::by_token: backend.divide_tokens(rows_of(binding)); [[fallthrough]];
      case Split::by_output: divided.outputs = rows_of(binding); break;
      case Split::of_columns:
      case Split::of_experts:
        divided.inputs = columns(n, ranks_);
        divided.outputs = rows_of(binding);
        break;
      case Split::of_heads: {
        if (is_whole(binding.layer)) continue;
        const std::uint64_t kv_heads = spec_.layer(binding.layer).n_kv_heads;
        divided.inputs = Division(kv_heads, ranks_).times(n / kv_heads);
        divided.outputs = rows_of(binding);
        break;
      }
      case Split::nowhere:
      case Split::everywhere:
      case Split::by_head:
      case Split::by_kv_head:
      case Split::by_column:
      case Split::with_mixer: continue;
    }
    backend.divide(*weights.matrix(binding.role), std::move(divided));
  }
}

}  // namespace tessera::detail
