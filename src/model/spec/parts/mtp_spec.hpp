// Reads the MTP head of a model.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Adds the file's first MTP head to the spec. The head's layer gets the settings of the model's last attention layer.
// Precondition: the rest of the spec is read. Errors: not_found, the file has no MTP heads; unsupported, there is no attention layer or
// it has global tokens.
[[nodiscard]] Status read_mtp_head(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
