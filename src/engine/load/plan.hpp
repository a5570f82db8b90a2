// Computes the memory that an engine takes, from the file's header and the options.
#pragma once

#include <tessera/engine.hpp>

#include "model/load/tensor_binding.hpp"
#include "model/model.hpp"

namespace tessera::detail {

// The result of planning, with which load() and plan() both begin.
struct Blueprint {
  const Architecture* architecture = nullptr;
  ModelSpec spec;
  std::vector<Binding> bindings;
  WeightBytes weights;
  Plan plan;
};

// Returns the options with memory, threads and KV options filled in. Errors: an option that is out of range, contradicts another one, or is
// not available here.
[[nodiscard]] Result<EngineOptions> resolve_options(const EngineOptions& options);

// Returns whether the engine will have a tokenizer: the options want one, and the file has one.
[[nodiscard]] Result<bool> has_tokenizer(const ModelSource& source, const EngineOptions& options);

// Plans the engine. Errors: all faults of the file's header, and of its tokenizer, that loading would find. They are found before anything
// is built from the header.
[[nodiscard]] Result<Blueprint> make_blueprint(const ModelSource& source, const EngineOptions& options,
                                               const backend::Backend& backend);

}  // namespace tessera::detail
