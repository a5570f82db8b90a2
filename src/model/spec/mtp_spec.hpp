// Reads a model's MTP head.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Adds the first of the file's MTP heads to the spec; the head's layer is like the model's last layer with attention. Precondition: the
// rest of the spec is read. Errors: not_found, the file has no MTP heads; unsupported, no layer attends or it has global tokens.
[[nodiscard]] Status read_mtp_head(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
