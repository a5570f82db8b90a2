// How much memory an engine takes, from the file's header and the options.
#pragma once

#include <tessera/engine.hpp>

#include "model/load/tensor_binding.hpp"
#include "model/model.hpp"

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

// Whether the engine will have a tokenizer: the options want one, and the file has it.
[[nodiscard]] Result<bool> has_tokenizer(const ModelSource& source, const EngineOptions& options);

// Refuses what loading would refuse of the file's header, the tokenizer included, before anything is built from it.
[[nodiscard]] Result<Blueprint> make_blueprint(const ModelSource& source, const EngineOptions& options,
                                               const backend::Backend& backend);

}  // namespace tessera::detail
