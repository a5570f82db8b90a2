// Loads a model that is divided among ranks.
#pragma once

#include <memory>
#include <vector>

#include "engine/load/plan.hpp"
#include "ranks/rank_group.hpp"

namespace tessera::detail {

// Loads each rank's part of the weights and makes its workspace. Errors: those of load_weights(); no memory.
[[nodiscard]] Status load_parts(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options,
                                std::vector<std::unique_ptr<RankPart>>& parts);

// Returns the whole model as the engine describes it: with the whole spec, the hash of all weights and the ropes, and without weights.
// It refers to `first`, rank 0's part.
[[nodiscard]] Model whole_model(const RankPart& first, const ModelSpec& spec);

}  // namespace tessera::detail
