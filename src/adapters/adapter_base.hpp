// Facts of a model that adapters are read for.
#pragma once

#include <string_view>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "adapters/adapter_file.hpp"

namespace tessera::detail {

// Returns the model's matrices, sorted by name: all tensors to which an adapter may belong.
[[nodiscard]] std::vector<AdaptedTensor> adapted_tensors(const ModelSource& source);

// Returns the index of the tensor of that name; -1 if the model has no such matrix.
[[nodiscard]] std::ptrdiff_t find_adapted(const AdapterBase& base, std::string_view name) noexcept;

// Returns the base for a model. `tensors` is adapted_tensors() of the source, and both must outlive the result. If the settings lack the architecture,
// its name is empty, and no adapter fits.
[[nodiscard]] AdapterBase adapter_base_of(const ModelSource& source, std::span<const AdaptedTensor> tensors);

}  // namespace tessera::detail
