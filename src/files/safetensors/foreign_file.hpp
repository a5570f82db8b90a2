// Recognises files that stand where a safetensors file or a JSON index should, and are something else: what a download
// left behind, or another kind of model file.
#pragma once

#include <optional>

#include <tessera/extend/files/byte_source.hpp>

namespace tessera::detail {

// Returns the error that says what the file is and what to do; nullopt if it begins like no known kind of file. `wanted`: what the file
// should be, with its article: "a safetensors file".
[[nodiscard]] std::optional<Error> foreign_file_error(ByteSource& source, const char* wanted);

}  // namespace tessera::detail
