// Makes the files of a written folder that concern text and the use of the model: the inverse of read_text_settings() and
// read_embedding_settings().
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

#include "hub/config.hpp"

namespace tessera::detail::hub {

struct TextFile {
  std::string name;  // "tokenizer.json", "1_Pooling/config.json"
  std::string text;
};

// Returns the files, and sets the keys of special tokens in config.json. Errors: those of the tokenizer.
[[nodiscard]] Result<std::vector<TextFile>> text_files(const Settings& settings, Json& config, const std::stop_token& stop);

// Returns JSON as text with indented lines, like transformers writes it.
[[nodiscard]] std::string in_lines(const Json& json);

}  // namespace tessera::detail::hub
