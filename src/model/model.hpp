// A loaded model: the spec, and each layer's weights in the backend's hands.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"
#include "model/load/tensor_binding.hpp"

namespace tessera::detail {

// The weights of a model or of one of its layers, by role; nullptr where there is none.
struct Weights {
  std::array<const backend::Matrix*, kRoles> matrices{};
  std::array<const backend::Vector*, kRoles> vectors{};
  const backend::Vector* value_norm = nullptr;  // ones, where values are normed: [value_dim]
  float output_scale = 1.0f;                    // of the residual stream behind the layer

  [[nodiscard]] const backend::Matrix* matrix(Role role) const noexcept { return matrices[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const backend::Vector* vector(Role role) const noexcept { return vectors[static_cast<std::size_t>(role)]; }
};

// One layer of a model, which has its two halves: what it is, and what it is made of.
struct Layer {
  std::uint32_t index;
  const LayerSpec& spec;
  const Weights& weights;
};

struct Model {
  ModelSpec spec;
  Weights weights;                     // those that exist once
  std::vector<Weights> layer_weights;  // [n_layers], then the MTP heads'
  const backend::Vector* mtp_shift = nullptr;  // [2, d_model], if there are MTP heads: what makes a row see the one before it
  Hash128 weights_hash;                // over all weights as they stand in the file

  std::vector<std::vector<double>> rope_frequencies;  // of each of spec.ropes, which `ropes` refer to
  std::vector<backend::RopeTable> ropes;              // [spec.ropes]
  std::vector<backend::RopeTable> layer_ropes;        // each layer's  [n_layers]

  [[nodiscard]] Layer layer(std::uint32_t index) const noexcept { return {index, spec.layer(index), layer_weights[index]}; }
};

// Where the KV cache has the state of MTP heads: the hidden state behind a sequence's last row, f32 [d_model].
[[nodiscard]] inline std::uint32_t mtp_state_layer(const ModelSpec& spec) noexcept {
  return spec.n_layers() + static_cast<std::uint32_t>(spec.mtp_heads.size());
}

// The KV cache has the model's layers, then its MTP heads, then their state. What a session of layers [first, last) fills ends here: of
// the whole model it is all of them.
[[nodiscard]] inline std::uint32_t end_of_kept(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) noexcept {
  return spec.has_mtp() && first == 0 && last == spec.n_layers() ? mtp_state_layer(spec) + 1 : last;
}

// Whether keys are normed when they have been rotated: those cannot be rotated to another position afterwards.
[[nodiscard]] inline bool norms_rotated_keys(const ModelSpec& spec) noexcept {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    return layer.rope != kNoRope && layer.head_norm_place == HeadNormPlace::behind_rope;
  });
}

// What a Model takes of the host's memory, apart from weights.
[[nodiscard]] std::uint64_t model_bytes(const ModelSpec& spec) noexcept;

struct WeightBytes {
  std::uint64_t packed = 0;     // in the backend's memory
  std::uint64_t staging = 0;    // while loading
  std::uint64_t file = 0;       // as they stand in the file
  std::uint64_t streamed = 0;   // of the file's bytes: read for every token (not the embedding table, unless it is the
                                // output too, and not MTP heads)
  bool all_f32 = true;          // every matrix is F32
};

[[nodiscard]] WeightBytes weight_bytes(std::span<const Binding> bindings, const ModelSource& source, const ModelSpec& spec,
                                       const backend::Backend& backend);

// Called with bytes read so far; false cancels.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Reads and packs everything. `model.spec` is set; the backend has reserved weight_bytes().
Status load_weights(Model& model, const ModelSource& source, std::span<const Binding> bindings, backend::Backend& backend,
                    const LoadProgress& progress, const std::stop_token& stop);

}  // namespace tessera::detail
