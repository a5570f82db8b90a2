// Reads the files of a folder that concern text: the tokenizer, its special tokens, the chat templates; and the authors' advice on sampling.
#pragma once

#include <filesystem>

#include "hub/mapping.hpp"

namespace tessera::detail::hub {

// Sets the settings that these files state. A folder without a tokenizer states none of them. Errors: io; corrupt_file, a file is too large
// or a value has another type than expected.
[[nodiscard]] Status read_text_settings(const std::filesystem::path& folder, const Config& config, Mapping& to);

}  // namespace tessera::detail::hub
