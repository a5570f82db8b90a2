#include "files/source_of_file.hpp"

#include <tessera/extend/files/model_file.hpp>

#include "core/error.hpp"

namespace tessera::detail {

// To add another kind of model file, recognise the file here by its content, before it is opened as GGUF.
Result<std::shared_ptr<const ModelSource>> source_of_file(const std::filesystem::path& path, const std::stop_token& stop) {
  TESSERA_TRY(ModelFile file, ModelFile::open(path, stop));
  return std::shared_ptr<const ModelSource>(std::make_shared<const ModelFile>(std::move(file)));
}

}  // namespace tessera::detail
