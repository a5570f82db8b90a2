// Recognises files that have the name of a safetensors file or JSON index, but another content: the remains of a failed download, or
// another kind of model file.
#pragma once

#include <optional>

#include <tessera/extend/files/byte_source.hpp>

namespace tessera::detail {

// Returns an error that says what the file is and what to do; nullopt if the file does not begin like any known kind of file. `wanted`: the
// expected kind of file, with its article: "a safetensors file".
[[nodiscard]] std::optional<Error> foreign_file_error(ByteSource& source, const char* wanted);

}  // namespace tessera::detail
