// A model's MTP head.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// The first of the file's heads is read, when everything else has been: its decoder layer is as the model's last one that attends.
// not_found: the file has none.
[[nodiscard]] Status read_mtp_head(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
