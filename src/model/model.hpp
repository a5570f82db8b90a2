// A loaded model: the spec, and each layer's weights in the backend's hands.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <tessera/core/hash.hpp>
#include <tessera/io/model_file.hpp>
#include <tessera/model/model_spec.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"
#include "model/tensor_binding.hpp"

namespace tessera::detail {

// The weights that play a part, by role; nullptr where the model has none.
struct Parts {
  std::array<const backend::Matrix*, kRoles> matrices{};
  std::array<const backend::Vector*, kRoles> vectors{};

  [[nodiscard]] const backend::Matrix* matrix(Role role) const noexcept { return matrices[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const backend::Vector* vector(Role role) const noexcept { return vectors[static_cast<std::size_t>(role)]; }
};

struct Model {
  ModelSpec spec;
  Parts parts;                           // those that exist once
  std::vector<Parts> layers;             // [n_layers]
  std::vector<double> rope_frequencies;  // radians a position of each pair  [rope_dim / 2]
  Hash128 weights_hash;                  // over all weights as they stand in the file, and the numbers of the spec
};

struct WeightBytes {
  std::uint64_t packed = 0;     // in the backend's memory
  std::uint64_t staging = 0;    // while loading
  std::uint64_t file = 0;       // as they stand in the file
  std::uint64_t streamed = 0;   // of the file's bytes: read for every token (not the embedding table, unless it is the
                                // output too)
  bool all_f32 = true;          // every matrix is F32
};

[[nodiscard]] WeightBytes weight_bytes(std::span<const Binding> bindings, const ModelFile& file,
                                       const backend::Backend& backend);

// Called with bytes read so far; false cancels.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Reads and packs everything. `model.spec` is set; the backend has reserved weight_bytes().
Status load_weights(Model& model, const ModelFile& file, std::span<const Binding> bindings, backend::Backend& backend,
                    const LoadProgress& progress, const std::stop_token& stop);

}  // namespace tessera::detail
