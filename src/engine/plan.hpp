// How much memory an engine takes, from the file's header and the options.
#pragma once

#include <tessera/engine.hpp>

#include "model/model.hpp"
#include "model/tensor_binding.hpp"

namespace tessera::detail {

// What load() and plan() both begin with.
struct Blueprint {
  const Architecture* architecture = nullptr;
  ModelSpec spec;
  std::vector<Binding> bindings;
  WeightBytes weights;
  Plan plan;
};

// Options made whole: memory, threads, step_rows. Errors: what is not available, and what makes no sense.
[[nodiscard]] Result<EngineOptions> resolve_options(const EngineOptions& options);

[[nodiscard]] Result<Blueprint> make_blueprint(const ModelFile& file, const EngineOptions& options,
                                               const backend::Backend& backend);

}  // namespace tessera::detail
