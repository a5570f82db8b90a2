// Makes a ModelSpec of a model's settings. Each subject has a function in a file of its own: read_attention(), read_feed(), read_rope(),
// ...
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

struct SpecOverrides {
  std::optional<std::uint32_t> sliding_window;  // replaces the file's window; 0 turns it off
  std::uint64_t context = 0;  // positions that sequences will have; 0: all positions that the model knows
  MtpHeads mtp = MtpHeads::leave_out;
};

// Returns the table for Setting::architecture. Error: unsupported, an unknown architecture; the message lists the known ones.
[[nodiscard]] Result<const Architecture*> find_architecture(const Settings& settings);

// Reads the spec. A setting that changes results and that tessera does not implement is an error, never ignored. Errors name the setting
// as its file does.
[[nodiscard]] Result<ModelSpec> read_spec(const ModelSource& source, const Architecture& table,
                                          const SpecOverrides& overrides);

}  // namespace tessera::detail
