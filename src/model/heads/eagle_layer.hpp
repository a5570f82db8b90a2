// The parts of a decoder layer that EAGLE heads of all versions share.
#pragma once

#include <optional>

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// Returns the RMS norm that has these weights, with the head's own epsilon.
[[nodiscard]] std::optional<backend::Norm> eagle_norm_of(const Pass& pass, const Weights& weights, Role weight);

// Computes the rest of the head's layer, after its keys and values have been written: attention with the queries in Act::q, then the
// feed. Both add their outputs to Act::x.
Status finish_eagle_layer(const Pass& pass, const Layer& head);

// Computes logits by the model's own output matrix from `in`, in a step of one row. Writes them to `logits`  [vocab].
Status read_target_logits(const Pass& pass, backend::Act in, std::span<float> logits);

// Makes the workspace large enough for the head's only layer.
void make_room_for_eagle_layer(const ModelSpec& spec, backend::WorkspaceShape& shape);

}  // namespace tessera::detail
