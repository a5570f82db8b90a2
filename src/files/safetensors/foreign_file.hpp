// Recognises files that have the name of a safetensors file or JSON index, but another content: the remains of a failed download, or
// another kind of model file.
#pragma once

#include <optional>

#include <tessera/extend/files/byte_source.hpp>

namespace tessera::detail {

// Returns an error that says what the file is and what to do. Returns nullopt if the file's beginning is not that of a known foreign kind.
// `wanted`: the kind of file that was expected, with its article, for the message: "a safetensors file".
[[nodiscard]] std::optional<Error> foreign_file_error(ByteSource& source, const char* wanted);

}  // namespace tessera::detail
