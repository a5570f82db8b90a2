#include <system_error>

#include <tessera/extend/files/model_source.hpp>

#include "core/error.hpp"
#include "files/source_of_file.hpp"
#include "hub/hub_model.hpp"

namespace tessera {

// Opens a folder or a file. To add another kind of folder, recognise it here by the files in it.
Result<std::shared_ptr<const ModelSource>> open_model(const std::filesystem::path& path, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const ModelSource>> {
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) return detail::hub::HubModel::open(path, stop);
    return detail::source_of_file(path, stop);
  });
}

}  // namespace tessera
