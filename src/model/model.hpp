// A loaded model: its spec, and pointers to its weights, which the backend holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"
#include "model/load/tensor_binding.hpp"

namespace tessera::detail {

// The weights of a model, or of one of its layers, by role. nullptr: there is no weight of that role.
struct Weights {
  std::array<const backend::Matrix*, kRoles> matrices{};
  std::array<const backend::Vector*, kRoles> vectors{};
  const backend::Vector* value_norm = nullptr;  // [value_dim] ones, in layers that norm their values
  float output_scale = 1.0f;                    // the residual stream is multiplied by this after the layer

  [[nodiscard]] const backend::Matrix* matrix(Role role) const noexcept { return matrices[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const backend::Vector* vector(Role role) const noexcept { return vectors[static_cast<std::size_t>(role)]; }
};

inline constexpr std::uint32_t kEveryRank = ~std::uint32_t{0};

// The rank that computes a layer, or a layer's mixer (ranks/model_division.hpp).
struct LayerPlace {
  enum class Of : std::uint8_t { mixer, layer };

  std::uint32_t rank = kEveryRank;  // kEveryRank: each rank computes its own heads, or there is only one rank
  bool here = true;                 // true: this rank computes the layer or mixer
  Of of = Of::mixer;                // says whether only the mixer or the whole layer is on one rank
  bool shares = true;               // true: `rank` sends its result to the other ranks; false: `rank` has the next layer too
};

// One layer of a model: its index, its description and its weights.
struct Layer {
  std::uint32_t index;
  const LayerSpec& spec;
  const Weights& weights;
  LayerPlace place = {};

  // Returns whether another rank computes the whole layer.
  [[nodiscard]] bool is_elsewhere() const noexcept { return place.of == LayerPlace::Of::layer && !place.here; }
};

struct Model {
  ModelSpec spec;
  Weights weights;                     // weights of the model (Owner::model)
  std::vector<Weights> layer_weights;  // [n_layers_with_heads()]
  std::vector<LayerPlace> places;      // [n_layers()]; empty: there is one rank
  // [2, d_model], for draft heads that keep a state (HiddenKept): weights of a convolution that moves each row's hidden state to the next row
  const backend::Vector* hidden_shift = nullptr;
  // EAGLE-3: tokens of the model that the head can guess, ascending [draft_heads.vocab_size]; element i belongs to the head's logit i.
  // Empty: the head guesses all tokens of the model.
  std::vector<Token> guessed_tokens;
  Hash128 weights_hash;                // hash of the file's bytes of all weights

  std::vector<std::vector<double>> rope_frequencies;  // [spec.ropes][pairs], to which `ropes` refer
  std::vector<backend::RopeTable> ropes;              // [spec.ropes]
  std::vector<backend::RopeTable> layer_ropes;        // [n_layers], the rope of each layer
  std::vector<backend::AttentionShape> attentions;    // attentions of the layers that attend, in the order of layers, without draft heads

  [[nodiscard]] Layer layer(std::uint32_t index) const noexcept {
    return {index, spec.layer(index), layer_weights[index], index < places.size() ? places[index] : LayerPlace()};
  }
  // Returns the attentions of layers [first, last).
  [[nodiscard]] std::span<const backend::AttentionShape> attentions_of(std::uint32_t first,
                                                                       std::uint32_t last) const noexcept {
    const auto at = [&](std::uint32_t layer) {
      return std::ranges::lower_bound(attentions, layer, {}, &backend::AttentionShape::layer);
    };
    return {at(first), at(last)};
  }
};

// Returns whether some layer norms its keys after rope. Keys of such a layer cannot be rotated to another position later.
[[nodiscard]] inline bool norms_rotated_keys(const ModelSpec& spec) noexcept {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    return layer.rope != kNoRope && layer.head_norm_place == HeadNormPlace::behind_rope;
  });
}

// Returns how many bytes of host memory a Model takes. Weights are not counted.
[[nodiscard]] std::uint64_t model_bytes(const ModelSpec& spec) noexcept;

struct WeightBytes {
  std::uint64_t packed = 0;     // bytes that packed weights take in the backend's memory
  std::uint64_t staging = 0;    // bytes that only loading needs
  std::uint64_t file = 0;       // bytes of all weights in the file
  std::uint64_t streamed = 0;   // bytes in the file that are read for every token. Not counted: draft heads, experts that are not chosen,
                                // and tables of which a token reads one row (the embeddings, unless they are the output matrix too)
  bool all_f32 = true;          // every matrix is F32
};

[[nodiscard]] WeightBytes weight_bytes(std::span<const Binding> bindings, const ModelSource& source, const ModelSpec& spec,
                                       const backend::Backend& backend);

// The bytes of the file that loading reads.
enum class ReadBytes : std::uint8_t {
  all,  // all weights, also the weights of other ranks, for Model::weights_hash
  own,  // only what the backend packs; weights_hash is not set
};

// Reads the weights and lets the backend pack those that this rank has. `bytes`: the bytes of the file that are read. `progress`: as
// EngineOptions::progress. Preconditions: `model.spec` is set; the backend has reserved weight_bytes(). Errors: cancelled, or an error of
// reading.
Status load_weights(Model& model, const ModelSource& source, std::span<const Binding> bindings,
                    backend::Backend& backend,
                    const std::function<bool(std::uint64_t done, std::uint64_t total)>& progress,
                    const std::stop_token& stop, ReadBytes bytes = ReadBytes::all);

}  // namespace tessera::detail
