// What an engine keeps of its file's header: scalars and strings, without the arrays (the vocabulary's, megabytes) and
// the tensors' descriptions.
#pragma once

#include <cstdint>

#include <tessera/extend/files/gguf.hpp>

namespace tessera::detail {

// The entries are the copy's own: the file may go. Strings over 1 MiB are left out.
[[nodiscard]] Result<GgufFile> copy_metadata(const GgufFile& file);
// At least what it takes.
[[nodiscard]] std::uint64_t metadata_bytes(const GgufFile& file) noexcept;

}  // namespace tessera::detail
