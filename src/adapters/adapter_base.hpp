// Makes an AdapterBase: the facts of a model that the readers of adapters need, to check that an adapter fits the model.
#pragma once

#include <string_view>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "adapters/adapter_file.hpp"

namespace tessera::detail {

// Returns the model's matrices, sorted by name. These are all tensors that an adapter may change.
[[nodiscard]] std::vector<AdaptedTensor> adapted_tensors(const ModelSource& source);

// Returns the index in base.tensors of the matrix with that name; -1 if the model does not have it.
[[nodiscard]] std::ptrdiff_t find_adapted(const AdapterBase& base, std::string_view name) noexcept;

// Returns a number of tensors that no adapter for this model exceeds: A, B and a magnitude for each matrix, or for each of the three matrices
// of a fused tensor, and a few more. Readers refuse files with more tensors before they read them, because a hostile file's header of
// 100 MB takes a third of a second.
[[nodiscard]] std::uint64_t most_adapter_tensors(const AdapterBase& base) noexcept;

// Returns the base for a model. `tensors`: adapted_tensors(source). `source` and `tensors` must outlive the result. If the settings lack the
// architecture, its name is empty in the result, and no adapter fits the base.
[[nodiscard]] AdapterBase adapter_base_of(const ModelSource& source, std::span<const AdaptedTensor> tensors);

}  // namespace tessera::detail
