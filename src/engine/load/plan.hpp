// Plans an engine: computes from the file's header and the options how much memory the engine will take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include <tessera/engine.hpp>

#include "model/load/tensor_binding.hpp"
#include "model/model.hpp"
#include "ranks/model_division.hpp"

namespace tessera::detail {

struct HeadFile;

// The result of planning. load() and plan() both begin with a Blueprint.
struct Blueprint {
  const Architecture* architecture = nullptr;
  ModelSpec spec;
  std::vector<Binding> bindings;  // of all weights of the whole model
  std::shared_ptr<const ModelDivision> division;  // division among ranks; nullptr: one rank only
  WeightBytes weights;
  Plan plan;
  std::uint32_t step_rows = 0;    // rows of the largest step
  std::uint64_t kept_tokens = 0;  // tokens whose keys and values Plan::kv counts
};

// Returns the options with defaults filled in for memory, threads and the KV cache. Errors: an option is out of range, contradicts another
// option, or is not available in this build or on this machine.
[[nodiscard]] Result<EngineOptions> resolve_options(const EngineOptions& options);

// Returns the number of ranks in other processes.
[[nodiscard]] inline std::size_t ranks_elsewhere(const EngineOptions& options) noexcept {
  return options.rank_transport != nullptr ? std::max(options.rank_transport->ranks(), 1u) - 1 : options.rank_addresses.size();
}

// Returns whether the engine will have a tokenizer: true if the options ask for one and the file has one.
[[nodiscard]] Result<bool> has_tokenizer(const ModelSource& source, const EngineOptions& options);

// Makes the Blueprint of an engine: the sizes of everything that load() will allocate, and the tensors that it will read. Checks the
// file's header before anything is built from it. `heads`: draft heads from another file, whose tensors `source` has too (JoinedSource);
// nullptr: none. Errors: every fault of the file's header or tokenizer that load() would report.
[[nodiscard]] Result<Blueprint> make_blueprint(const ModelSource& source, const HeadFile* heads, const EngineOptions& options,
                                               const backend::Backend& backend);

}  // namespace tessera::detail
