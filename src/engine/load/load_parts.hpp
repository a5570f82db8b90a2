// Loads a model that is divided among ranks.
#pragma once

#include <memory>
#include <vector>

#include "engine/load/plan.hpp"
#include "ranks/threads/rank_group.hpp"

namespace tessera::detail {

// Loads a rank's part of the weights into `model`, and allocates the rank's workspace. `bytes` says whether the whole file is read, for
// the hash of all weights, or only this part. `progress` counts the bytes that are read. Errors: those of load_weights(); no memory.
[[nodiscard]] Status load_part(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options, std::uint32_t rank,
                               RankBackend& backend, Model& model, ReadBytes bytes, const LoadProgress& progress);
// Loads the parts of all ranks in this process.
[[nodiscard]] Status load_parts(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options,
                                std::vector<std::unique_ptr<RankPart>>& parts);

// Returns a Model without weights, which describes the whole model. An engine with ranks needs it, because no rank has all weights. The
// result has the spec of the whole model, the hash of all weights, and the ropes. Its ropes point into `first`, rank 0's part of the
// model, so `first` must outlive the result.
[[nodiscard]] Model whole_model(const Model& first, const ModelSpec& spec);

}  // namespace tessera::detail
