// From a model's settings to a ModelSpec. What is read of one subject is a function in a file of its own: read_attention(), read_feed(),
// read_rope(), ...
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

struct SpecOverrides {
  std::optional<std::uint32_t> sliding_window;  // instead of the file's; 0 turns it off
  std::uint64_t context = 0;  // positions that sequences will have; 0: all that the model knows
  MtpHeads mtp = MtpHeads::leave_out;
};

// The table for Setting::architecture; an unknown one is an error that lists the known ones.
[[nodiscard]] Result<const Architecture*> find_architecture(const Settings& settings);

// Errors name the setting as its file calls it. A setting that changes results and that tessera does not implement is an error, never ignored.
[[nodiscard]] Result<ModelSpec> read_spec(const ModelSource& source, const Architecture& table,
                                          const SpecOverrides& overrides);

}  // namespace tessera::detail
