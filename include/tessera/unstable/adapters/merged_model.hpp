// Merges adapters into a model, for programs that write the result.
#pragma once

#include <memory>
#include <span>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/extend/adapters/merged_adapter.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera {

// Returns the model with the adapters merged into its weights, in the order of the list. Tensors keep their formats. A tied model whose table of
// embeddings or output matrix an adapter changes gets an output matrix of its own. Errors: those of EngineOptions::merge.
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> merged_model(std::shared_ptr<const ModelSource> model, std::span<const MergedAdapter> adapters,
                                                                      const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
