// From a file's metadata to a ModelSpec.
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

struct SpecOverrides {
  std::optional<std::uint32_t> sliding_window;  // instead of the file's; 0 turns it off
  std::uint64_t context = 0;  // positions that sequences will have; 0: all that the model knows
  MtpHeads mtp = MtpHeads::leave_out;
};

// The table for the file's general.architecture; an unknown one is an error that lists the known ones.
[[nodiscard]] Result<const Architecture*> find_architecture(const GgufFile& metadata);

// Errors name the key. A setting that changes results and that tessera does not implement is an error, never ignored.
[[nodiscard]] Result<ModelSpec> read_spec(const ModelFile& file, const Architecture& table,
                                          const SpecOverrides& overrides);

}  // namespace tessera::detail
