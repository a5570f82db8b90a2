#include "files/source_of_file.hpp"

#include <string_view>

#include <tessera/extend/files/model_file.hpp>

#include "core/error.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {

namespace {

// Refuses a GGUF file that says it is something else than a model.
Status check_is_model(const GgufFile& file) {
  const auto stated = file.string_or("general.type", "");
  const std::string_view type = stated ? *stated : std::string_view();
  std::string_view what;
  if (type == "adapter") what = "a LoRA adapter: load the model that it belongs to, and then the adapter";
  if (type == "mmproj") what = "the image or audio part of a model, which tessera does not compute: load the language model, which is another file";
  if (type == "imatrix") what = "a list of importances, which quantising takes";
  if (what.empty()) return {};
  return error_at(ErrorCode::unsupported, name_of(file.source()), "general.type is \"{}\": the file is no model, but {}", type, what);
}

}  // namespace

// To add another kind of model file, recognise the file here by its content, before it is opened as GGUF.
Result<std::shared_ptr<const ModelSource>> source_of_file(const std::filesystem::path& path, const std::stop_token& stop) {
  TESSERA_TRY(ModelFile file, ModelFile::open(path, stop));
  TESSERA_TRY_STATUS(check_is_model(file.metadata()));
  return std::shared_ptr<const ModelSource>(std::make_shared<const ModelFile>(std::move(file)));
}

}  // namespace tessera::detail
