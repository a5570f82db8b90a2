#include <tessera/extend/files/model_source.hpp>

#include <tessera/files/model_file.hpp>

#include "core/error.hpp"

namespace tessera {

// Opens a GGUF file. To add another kind of model file, recognise it here by its content, before GGUF is tried.
Result<std::shared_ptr<const ModelSource>> open_model(const std::filesystem::path& path, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const ModelSource>> {
    TESSERA_TRY(ModelFile file, ModelFile::open(path, stop));
    return std::shared_ptr<const ModelSource>(std::make_shared<const ModelFile>(std::move(file)));
  });
}

}  // namespace tessera
