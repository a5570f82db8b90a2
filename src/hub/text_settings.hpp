// Reads the files of a folder that concern text: the tokenizer, its special tokens, the chat templates, and the recommended settings for
// sampling.
#pragma once

#include <filesystem>

#include "hub/mapping.hpp"

namespace tessera::detail::hub {

// Sets the settings that these files state. Sets none of them for a folder without a tokenizer. Errors: io; corrupt_file, a file is too large
// or a value does not have the expected type.
[[nodiscard]] Status read_text_settings(const std::filesystem::path& folder, const Config& config, Mapping& to);

}  // namespace tessera::detail::hub
