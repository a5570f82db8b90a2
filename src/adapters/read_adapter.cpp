#include "adapters/adapter_file.hpp"

#include <system_error>

#include "adapters/readers.hpp"
#include "core/error.hpp"
#include "files/adapter_contents.hpp"
#include "os/file.hpp"

namespace tessera::detail {

bool is_adapter(const std::filesystem::path& path) noexcept {
  try {
    std::error_code ignored;
    if (!adapters::peft_folder_of(path).empty()) return true;
    return std::filesystem::is_regular_file(path, ignored) && is_adapter_file(path);
  } catch (...) {
    return false;
  }
}

Result<AdapterFile> read_adapter(const std::filesystem::path& path, const AdapterBase& base, const std::stop_token& stop) {
  const std::filesystem::path folder = adapters::peft_folder_of(path);
  if (!folder.empty()) return adapters::read_peft(folder, base, stop);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return error_at(ErrorCode::not_found, os::text_of(path),
                    "the folder has no adapter_config.json: give the folder of a PEFT adapter, or a GGUF adapter");
  }
  return adapters::read_single_file(path, base, stop);
}

}  // namespace tessera::detail
