// The report of tessera-inspect on a model's folder: its settings (under the library's names and under the folder's), its tokenizer, its
// tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/extend/files/model_source.hpp>

#include "report.hpp"

namespace tessera::inspect {

std::string folder_text(const ModelSource& model, const Sections& sections);
std::string folder_json(const ModelSource& model, const Sections& sections);

// Return the value of one setting of a folder, in the form of raw_value() or of json_value(). `key`: the setting's key in the folder's
// files ("hidden_size"), or its name in the library ("d_model"). Return nullopt if the folder does not have the setting.
std::optional<std::string> folder_value(const ModelSource& model, std::string_view key);
std::optional<std::string> folder_json_value(const ModelSource& model, std::string_view key);

}  // namespace tessera::inspect
