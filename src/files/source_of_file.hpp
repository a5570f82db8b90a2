// Opens a model by its file or, if the model is split, by its first file.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>

#include <tessera/extend/files/model_source.hpp>

namespace tessera::detail {

// Opens the GGUF model at a path. Errors: those of ModelFile::open(); unsupported, the file says that it is an adapter or something else that
// is no model.
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> source_of_file(const std::filesystem::path& path, const std::stop_token& stop);

}  // namespace tessera::detail
