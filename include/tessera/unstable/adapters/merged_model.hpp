// Merges adapters into a model, for programs that write the result.
#pragma once

#include <memory>
#include <span>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/extend/adapters/merged_adapter.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera {

// Returns the model with the adapters merged into its weights, in the order of the list. Tensors keep their formats. Exception: a tied
// model uses one tensor as embedding table and as output matrix; if an adapter changes one of the two, the result has a separate output
// matrix. Errors: those of EngineOptions::merge.
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> merged_model(std::shared_ptr<const ModelSource> model, std::span<const MergedAdapter> adapters,
                                                                      const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
