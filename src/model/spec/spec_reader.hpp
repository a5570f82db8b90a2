// Makes a ModelSpec from a model's settings. Each subject has a function in a separate file: read_attention(), read_feed(), read_rope()
// and so on.
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

struct SpecOverrides {
  std::optional<std::uint32_t> sliding_window;  // replaces the file's window; 0: no window
  std::uint64_t context = 0;  // largest number of positions of a sequence; 0: the model's context
  MtpHeads mtp = MtpHeads::leave_out;
};

// Returns the table of the architecture that the settings name. Error: unsupported, the architecture is unknown; the message lists the
// known ones.
[[nodiscard]] Result<const Architecture*> find_architecture(const Settings& settings);

// Reads the spec. A setting that changes results and that tessera does not implement is an error; it is never ignored. Errors name a setting
// by its key in the file.
[[nodiscard]] Result<ModelSpec> read_spec(const ModelSource& source, const Architecture& table,
                                          const SpecOverrides& overrides);

}  // namespace tessera::detail
